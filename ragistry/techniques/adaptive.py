"""Adaptive retrieval: search words only if they suffice for the query, else words and vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from ragistry.config.numbers import Number
from ragistry.config.parse import Configuration, parse_config
from ragistry.errors import InvalidConfigError
from ragistry.protocols import Technique
from ragistry.techniques.built_in import TechniqueConfig, continued
from ragistry.text.analysis import TERM_LIMIT
from ragistry.trace import stage
from ragistry.types import Document, Where

_IDENTIFIER = re.compile(
    r"""(?=.*[a-z])(?=.*\d)[\w.:/+-]+        # letters and digits: E1042, LNT-1042, v2.1
    |   \d+(\.\d+)+                          # a version number: 2.0.1
    |   \w*[a-z]_\w+ | \w+::\w+              # snake_case, a::b
    |   \w+(\.[a-z]\w+)+                     # config.toml, os.path
    |   (\.\.?|~|\w[\w.-]*)?(/[\w.-]+)+/?    # a/path
    |   --?[a-z][\w-]*                       # --option
    |   \w+\(\)                              # call()
    |   (?-i:\w*[a-z][A-Z]\w*)               # camelCase
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


class AdaptiveTechnique:
    """Adaptive: search words only if they suffice for the query, else words and vectors.

    ``bases`` are two: first one that searches words, then one that searches words and vectors. Two rules are tried in
    turn:

    1. ``identifiers``: many of the query's words are codes, paths or versions, and words find something. Vectors
       represent codes poorly.
    2. ``clear``: the second score by words is small compared with the best, so vectors would hardly change the order.

    If one applies, the documents of the first base are returned, and the query is not embedded. The stage ``choose`` of
    the trace has the chosen ``base`` and the reason.

    After Arabzadeh, Yan and Clarke, "Predicting Efficiency/Effectiveness Trade-offs for Dense vs. Sparse Retrieval
    Strategy Selection", 2021. Deviation: theirs learns from judgements; here each rule has one constant, chosen on half
    of the queries of nine sets. Scores as a sign of how good a ranking is: Shtok et al., "Predicting Query Performance
    by Query-Drift Estimation", 2012. The spread of the vectors' scores is not used here, because `hybrid` uses it to
    weight its bases. Two other signals cost more than they saved: words in quotes, because such a query often asks for
    more, and rankings by words and by vectors without a common document.
    """

    class Config(TechniqueConfig):
        identifiers: Number = Field(
            default=0.25, gt=0, le=1, description="search words only from this share of identifiers"
        )
        clear: Number = Field(
            default=0.5,
            ge=0,
            lt=1,
            description="search words only if the second score is at most this share of the best",
        )

    def __init__(self, config: Configuration, *, bases: Sequence[Technique]) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        for key, said in self.disagreements(self.config.model_dump(), bases).items():
            raise InvalidConfigError(f"{type(self).__name__}: {key}: {said}")
        self.words, self.everything = bases

    @staticmethod
    def disagreements(config: Mapping[str, Any], bases: Sequence[Any]) -> dict[str, str]:  # noqa: ARG004
        """Return the errors in the bases by key; called before the technique is built."""
        if len(bases) == 2:
            return {}
        return {"bases": f"got {len(bases)}; list one for words and one for everything, such as [bm25, hybrid]"}

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        with stage("choose") as choose:
            found = self.words.retrieve(query, top_k=max(wanted, self.config.top_k, 2), where=where)
            reason = self._enough(query, found)
            base = self.words if reason else self.everything
            choose.detail["base"] = getattr(base, "name", type(base).__name__)
            choose.detail["because"] = reason or "no rule applies"
        if not reason:
            return self.everything.retrieve(query, top_k=wanted, where=where)
        if self.config.top_k <= len(found) < wanted:
            more = self.everything.retrieve(query, top_k=wanted, where=where)
            return continued(found, more, "adaptive", wanted)
        return found[:wanted]

    def _enough(self, query: str, found: Sequence[Document]) -> str:
        """Return the reason why the results by words suffice; empty if they do not."""
        share, second = identifier_share(query), part_of_best(found)
        if found and share >= self.config.identifiers:
            return f"{share:.0%} of the query's words are identifiers"
        if len(found) >= self.config.top_k and second <= self.config.clear:
            return f"the second score by words is {second:.2f} of the best"
        return ""


def identifier_share(query: str) -> float:
    """Return the share of the query's words that are identifiers, 0 to 1."""
    words = [word for part in query.split() if (word := part.strip(".,;:!?[]{}'\"`"))]
    return sum(map(is_identifier, words)) / max(1, len(words))


def is_identifier(word: str) -> bool:
    """Return whether a word is a code, path, version, option or program name instead of a word of a language."""
    return len(word) <= TERM_LIMIT and _IDENTIFIER.fullmatch(word) is not None


def part_of_best(documents: Sequence[Document]) -> float:
    """Divide the second score by the best; 0 without a second, 1 if the best is not positive."""
    best, second, *_ = [*(document.score for document in documents[:2]), 0.0, 0.0]
    return max(0.0, second) / best if best > 0 else 1.0
