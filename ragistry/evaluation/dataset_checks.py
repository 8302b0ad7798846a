"""What can be wrong with a test set, each kind said once with how many and the first of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ragistry.evaluation.dataset import Qrels, Text
from ragistry.utils.wording import agreeing, numbered

NAMED = 3
"""Ids that a problem names; of more it says how many."""


def faults(corpus: Sequence[Text], queries: Mapping[str, str], qrels: Qrels) -> list[str]:
    """What makes a test set useless, one line each."""
    if not corpus:
        return ["the corpus is empty; give at least one document"]
    known = {document.id for document in corpus}
    counts = Counter(document.id for document in corpus)
    problems = [
        *_said(
            "[document has|documents have] an id that another one has",
            (name for name, count in counts.items() if count > 1),
            "give [it|each] its own",
        ),
        *_said(
            "[document is|documents are] judged relevant but not in the corpus",
            _relevant(qrels) - known,
            "add [it|them], or take out what is said of [it|them] in the qrels",
        ),
        *_said(
            "[query has|queries have] judgements but no text",
            qrels.keys() - queries.keys(),
            "add [it|them] to the queries, or take [its|their] judgements out",
        ),
        *_said(
            "[query is|queries are] empty",
            (query for query, text in queries.items() if not text.strip()),
            "write what is asked, or take [it|them] out",
        ),
        *_said(
            "[document or query has|documents or queries have] half a surrogate pair, which no file and no model takes",
            chain(
                (one.id for one in corpus if _broken(one.id + one.whole)),
                (q for q in queries if _broken(q + queries[q])),
            ),
            "decode [its|their] source with errors='replace'",
        ),
        *_said(
            "[id is empty or holds|ids are empty or hold] a tab or a line end",
            filter(_unwritable, chain(known, queries)),
            "give [it another id|them other ids]",
        ),
        *_said(
            "[query has|queries have] a grade that is no whole number",
            (q for q, grades in qrels.items() if _uneven(grades)),
            "grade with 0, 1, 2, …",
        ),
    ]
    if not any(qrels.get(query) for query in queries):
        problems.append("no query has judgements; say in the qrels which documents answer it")
    return problems


def cautions(corpus: Sequence[Text], queries: Mapping[str, str], qrels: Qrels) -> list[str]:
    """What a reader of the results must know, one line each."""
    known = {document.id for document in corpus}
    hopeless = (q for q, grades in qrels.items() if grades and max(grades.values()) <= 0)
    return [
        *_said(
            "[query has no judgements: no mean counts it|queries have no judgements: no mean counts them]",
            (q for q in queries if not qrels.get(q)),
        ),
        *_said(
            "[query has|queries have] judgements but no relevant document: everybody scores 0 on [it|them]", hopeless
        ),
        *_said(
            "[document has|documents have] neither title nor text: [it|they] cannot be found",
            (d.id for d in corpus if not d.whole),
        ),
        *_said(
            "[document is|documents are] judged not relevant and not in the corpus",
            set().union(*qrels.values()) - known,
        ),
    ]


def _said(what: str, ids: Iterable[str], remedy: str = "") -> Iterator[str]:
    names = sorted(set(ids))
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    if names:
        said = f"{numbered(len(names), what)}: {', '.join(map(repr, names[:NAMED]))}{rest}"
        yield f"{said}; {agreeing(len(names), remedy)}" if remedy else said


def _relevant(qrels: Qrels) -> set[str]:
    return {document for grades in qrels.values() for document, grade in grades.items() if grade > 0}


def _unwritable(name: str) -> bool:
    return not name or not {"\t", "\n", "\r"}.isdisjoint(name)


def _broken(text: str) -> bool:
    """Whether no file and no model can take a text in."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _uneven(grades: Mapping[str, object]) -> bool:
    return any(type(grade) is not int for grade in grades.values())
