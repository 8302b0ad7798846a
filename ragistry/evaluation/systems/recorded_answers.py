"""Keep the answers of models in an SQLite file: each question is asked once, and its cost counts every time.

A comparison that was stopped goes on where it ended, one that is run again asks no model, and a file that is carried to
another machine answers there without network. A key is the hash of a model, its settings and a question, so that the
file holds no question and no prompt. It is used in comparisons alone, never in a search.

A trace contains the original cost of an answer: calls, tokens, and, in the details of the stage, milliseconds to add to
the measured wall time (`CHARGED`) and CPU time (`CHARGED_CPU`).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragistry import trace
from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import EvaluationError, ModelConnectionError, StoreError
from ragistry.models.adapt import Counted
from ragistry.protocols import Embedder, Generator, LibraryStore, Reranker
from ragistry.types import EmbedderFingerprint, Role, Stage

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragistry.protocols import Vectors

CHARGED, CHARGED_CPU = "charged_ms", "charged_cpu_ms"
CACHED = "cached"
"""Detail of a stage that used answers of an earlier comparison."""
TEXTS_AT_ONCE = 64
"""Number of texts embedded together; a killed process loses at most this work."""
REMEMBERED = 256
"""Number of answers kept in memory, because a question is asked several times."""
VERSION = 0
"""Version of the tables, which the file has as ``user_version``."""
Asked = dict[str, Any]
"""A question to a model: ``role``, ``text``, and everything else that decides the answer."""
Ask = Callable[[list[Asked]], Sequence[Any]]
"""Asks the model; returns for each question a JSON value or a vector."""

_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS models (part TEXT PRIMARY KEY, kind TEXT, model TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    asked BLOB PRIMARY KEY, answer BLOB, ms REAL, cpu_ms REAL, tokens REAL, note TEXT
) WITHOUT ROWID;
COMMIT;
"""
SECRET = re.compile(r"(api_?key|access_token|auth_token|authorization|passw(or)?d|secret)$", re.IGNORECASE)
"""Endings of the names of secret settings, which are not written to reports."""
LOGIN = re.compile(r"(?<=//)[^/?#\s]*@")
"""User name and password in a URL."""


def kept(answers: AnswerStore, model: Generator | Reranker) -> RecordedModel:
    """Wrap a generator or a reranker so that its answers are kept."""
    return (RecordedGenerator if isinstance(model, Generator) else RecordedReranker)(answers, model_of(model), model)


def kept_embedder(answers: AnswerStore, name: str, model: Embedder) -> RecordedEmbedder:
    """Wrap an embedder so that its vectors are kept. ``name``: what the configuration calls it.

    Raises:
        ModelError: It cannot be reached, and the file does not know it by its name either.
    """
    try:
        identity = fingerprint_of(model)
        answers.name_embedder(name, identity)
    except ModelConnectionError:
        if (known := answers.known_embedder(name)) is None:
            raise
        identity = known
    return RecordedEmbedder(answers, identity, model)


def cached_embedder(embedder: Embedder, path: Path) -> RecordedEmbedder:
    """Keep the vectors of an embedder in a file, which any number of models may share."""
    return RecordedEmbedder(AnswerStore(path), fingerprint_of(embedder), embedder)


class Answer(NamedTuple):
    """An answer of a model as bytes, its time and tokens, and what the model reported as degraded."""

    answer: bytes
    ms: float
    cpu_ms: float
    tokens: float
    note: str


class AnswerStore:
    """The file of answers; created with the first one.

    Args:
        path: Path of the file.

    Raises:
        EvaluationError: It is damaged, of another version, or something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.charged: set[bytes] = set()
        """Answers already counted in the current retrieval: a repeated question is free, as in a workspace."""
        self._made: set[bytes] = set()
        self._last: dict[bytes, Answer] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection:
            problems = [row for (row,) in connection.execute("PRAGMA quick_check") if row != "ok"]
        if problems:
            raise self._damaged(problems[0])

    def known_embedder(self, name: str) -> dict[str, Any] | None:
        """Return the identity that an embedder had when it was last reached."""
        with self._open() as connection:
            row = connection.execute("SELECT model FROM models WHERE part = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def name_embedder(self, name: str, model: Any) -> None:
        """Keep the identity of an embedder."""
        with self._open() as connection:
            connection.execute("INSERT OR REPLACE INTO models VALUES (?, 'embedder', ?)", (name, json.dumps(model)))

    def answers(
        self,
        model: Any,
        asked: Sequence[Asked],
        ask: Ask,
        *,
        warm_up: Callable[[], None] = lambda: None,
        is_model: bool = True,
    ) -> list[bytes]:
        """Return the answer to each question, and count the cost of all in the trace.

        Args:
            model: The identity of the model.
            asked: The questions.
            ask: Asks the model the questions whose answers are missing.
            warm_up: Called before the model is asked; its time is not charged.
            is_model: Count a call of a model.
        """
        start, cpu = perf_counter(), process_time()
        keys = [_key(model, one) for one in asked]
        with trace.stage("kept answers") as this:
            known = self._known(keys)
            this.detail[CACHED] = any(key not in self._made for key in known)
            missing = [(key, one) for key, one in dict(zip(keys, asked, strict=True)).items() if key not in known]
            if missing:
                warm_up()
            for first in range(0, len(missing), TEXTS_AT_ONCE):
                known |= self._ask(missing[first : first + TEXTS_AT_ONCE], ask)
            new = [known[key] for key in dict.fromkeys(keys) if key not in self.charged]
            if new and is_model:
                trace.model_call(tokens=round(sum(one.tokens for one in new)))
            for note in dict.fromkeys(one.note for one in new if one.note):
                trace.degraded(note)
            this.detail[CHARGED] = sum(one.ms for one in new) - (perf_counter() - start) * 1000
            this.detail[CHARGED_CPU] = sum(one.cpu_ms for one in new) - (process_time() - cpu) * 1000
        return [known[key].answer for key in keys]

    def missing(self, model: Any, asked: Sequence[Asked]) -> list[int]:
        """Return the positions of the questions without an answer in the file; of equal questions, the first."""
        keys = [_key(model, one) for one in asked]
        known = self._known(keys)
        first = {key: place for place, key in reversed(list(enumerate(keys))) if key not in known}
        return sorted(first.values())

    def add(self, model: Any, answers: Iterable[tuple[Asked, bytes]]) -> None:
        """Add answers of the model that are known from elsewhere; they have no cost."""
        with self._open() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, 0, 0, 0, '')",
                ((_key(model, asked), answer) for asked, answer in answers),
            )

    def cost(self, model: Any, asked: Sequence[Asked]) -> tuple[float, float, float]:
        """Return the seconds, CPU-seconds and tokens of these answers."""
        known = self._known([_key(model, one) for one in asked]).values()
        milliseconds = sum(one.ms for one in known), sum(one.cpu_ms for one in known)
        return milliseconds[0] / 1000, milliseconds[1] / 1000, sum(one.tokens for one in known)

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        if self._last.keys() >= set(keys):  # each technique asks the same question several times
            return {key: self._last[key] for key in keys}
        query = "SELECT answer, ms, cpu_ms, tokens, note FROM answers WHERE asked = ?"
        with self._open() as connection:
            rows = {key: connection.execute(query, (key,)).fetchone() for key in dict.fromkeys(keys)}
        found = {key: Answer(*row) for key, row in rows.items() if row is not None}
        self._remember(found)
        return found

    def _remember(self, answers: dict[bytes, Answer]) -> None:
        if len(self._last) + len(answers) > REMEMBERED:
            self._last = {}
        if len(answers) <= REMEMBERED:
            self._last |= answers

    def _ask(self, missing: Sequence[tuple[bytes, Asked]], ask: Ask) -> dict[bytes, Answer]:
        """Ask the model and keep its answers, each with its share of the time and tokens."""
        with trace.collect() as inner, trace.stage("ask"):
            start, cpu = perf_counter(), process_time()
            said = ask([one for _, one in missing])
            ms, cpu_ms = (perf_counter() - start) * 1000, (process_time() - cpu) * 1000
        stages, share = inner.stages(), len(missing)
        tokens = sum(stage.tokens for stage in stages)
        note = "; ".join(stage.degraded for stage in stages if stage.degraded)
        made = {
            key: Answer(_bytes(answer), ms / share, cpu_ms / share, tokens / share, note)
            for (key, _), answer in zip(missing, said, strict=True)
        }
        with self._open() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", ((key, *one) for key, one in made.items())
            )
        self._made |= made.keys()
        self._remember(made)
        return made

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one transaction, so that threads and processes can share the file."""
        try:
            with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
                tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
                [version] = connection.execute("PRAGMA user_version").fetchone()
                if (tables, version) == (set(), VERSION):
                    connection.executescript(_TABLES)
                elif (tables, version) != ({"models", "answers"}, VERSION):
                    raise EvaluationError(
                        f"{str(self.path)!r} is not a file of answers of version {VERSION}, but of version {version} "
                        f"with the tables {sorted(tables)}; delete it, or give another with --answers"
                    )
                yield connection
        except sqlite3.OperationalError as error:
            raise EvaluationError(
                f"cannot use {str(self.path)!r}: {error}; give another file with --answers"
            ) from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: object) -> EvaluationError:
        return EvaluationError(
            f"the file of answers {str(self.path)!r} is damaged: {error}; delete it to ask the models again"
        )


def _key(model: Any, asked: Asked) -> bytes:
    return sha256(json.dumps([model, asked], sort_keys=True).encode()).digest()


def _bytes(answer: Any) -> bytes:
    return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


def charged(stages: Sequence[Stage], key: str = CHARGED) -> float:
    """Return the milliseconds to add to the measured ones, for work done earlier."""
    return sum(float(stage.detail.get(key, 0.0)) for stage in stages)


class RecordedModel:
    """A model whose answers are kept.

    Args:
        file: The answers.
        model: The identity of the model.
        live: The model that answers missing questions.
    """

    def __init__(self, file: AnswerStore, model: Any, live: Any) -> None:
        self.file, self.model, self.live = file, model, live


class RecordedEmbedder(RecordedModel):
    """An `Embedder`. Each text is a separate question, independent of its batch."""

    _warm = False

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return EmbedderFingerprint(**self.model)

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        def warm_up() -> None:
            if not self._warm:  # Loading the model is not part of the first text's time.
                self._warm = True
                with trace.collect():
                    self.live.embed(["warm up"], role=role)

        def ask(missing: list[Asked]) -> list[bytes]:
            vectors = self.live.embed([asked["text"] for asked in missing], role=role)
            return [np.asarray(vector, "<f4").tobytes() for vector in vectors]

        asked = [{"role": role, "text": text} for text in texts]
        rows = b"".join(self.file.answers(self.model, asked, ask, warm_up=warm_up))
        self.file.charged |= {_key(self.model, one) for one in asked}
        return np.frombuffer(rows, "<f4").astype(np.float32).reshape(-1, self.fingerprint.dimension)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        def ask(missing: list[Asked]) -> list[int]:
            return list(self.live.count_tokens([asked["text"] for asked in missing]))

        return list(map(json.loads, self.file.answers(self.model, [{"role": "tokens", "text": t} for t in texts], ask)))

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the documents, each once, whose vectors are not in the file."""
        asked = [{"role": "document", "text": text} for text in texts]
        return [texts[place] for place in self.file.missing(self.model, asked)]

    def take(self, texts: Sequence[str], library: LibraryStore) -> int:
        """Copy the vectors of documents with equal texts from a library whose vectors are of this model.

        Returns the number of copied vectors.
        """
        try:
            if library.embedder() != self.fingerprint:
                return 0
            wanted = set(texts)
            searched = ((searched_text(chunk.content, chunk.metadata), chunk.id) for chunk in library.scan())
            found = {text: id for text, id in searched if text in wanted}
            rows = zip(found, library.vectors(list(found.values())), strict=True)
            vectors = {text: np.asarray(row, "<f4") for text, row in rows if row.any()}
        except StoreError:  # the library is not needed
            return 0
        pairs = vectors.items()
        self.file.add(self.model, (({"role": "document", "text": text}, vector.tobytes()) for text, vector in pairs))
        return len(vectors)

    def cost(self, texts: Sequence[str]) -> tuple[float, float, float]:
        """Return the original seconds, CPU-seconds and tokens of the vectors of these documents."""
        return self.file.cost(self.model, [{"role": "document", "text": text} for text in texts])


class RecordedGenerator(RecordedModel):
    """A `Generator`. The schema is part of the question."""

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        asked = {"role": "prompt", "text": prompt, "schema": schema.model_json_schema() if schema else None}
        return str(
            json.loads(self.file.answers(self.model, [asked], lambda _: [self.live.generate(prompt, schema=schema)])[0])
        )


class RecordedReranker(RecordedModel):
    """A `Reranker`. A query with all its texts is one question, because some models compare the texts."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        asked = {"role": "rerank", "text": query, "texts": list(texts)}
        [said] = self.file.answers(self.model, [asked], lambda _: [list(map(float, self.live.rerank(query, texts)))])
        return list(json.loads(said))


def fingerprint_of(embedder: Embedder) -> dict[str, Any]:
    """Return the identity of an embedder, without its probe, which varies slightly."""
    return {key: value for key, value in asdict(embedder.fingerprint).items() if key != "probe"}


def model_of(part: Any) -> Any:
    """Return the identity of a model as plain values: an embedder's fingerprint, else class and settings.

    Settings are plain attributes, also in mappings, and the URL of its server.
    """
    if isinstance(part, RecordedModel):
        return part.model
    if isinstance(part, Embedder):
        return fingerprint_of(part)
    while isinstance(part, Counted):
        part = part.own
    found: dict[str, Any] = {"use": f"{type(part).__module__}:{type(part).__qualname__}"}
    for name, value in getattr(part, "__dict__", {}).items():
        for address in ("base_url", "host"):
            if isinstance(at := getattr(value, address, None), str):
                found["at"] = LOGIN.sub("", at)
        with suppress(TypeError, ValueError, RecursionError):  # A connection is not a setting.
            found |= json.loads(json.dumps({name.lstrip("_"): value}), object_hook=_without_secrets)
    return found | ({"model": str(part.model)} if hasattr(part, "model") else {})


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON values, without secrets; other values become text."""
    found: dict[str, Any] = json.loads(json.dumps(settings, default=_json_value), object_hook=_without_secrets)
    return found


def _json_value(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return value.model_dump() if hasattr(value, "model_dump") else str(value)


def _without_secrets(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        name: LOGIN.sub("", value) if isinstance(value, str) else value
        for name, value in settings.items()
        if not SECRET.search(name)
    }
