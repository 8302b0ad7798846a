"""Look at a model in a folder: what it is, whether it tells ten questions apart, and how fast it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from ragistry.models.folder import FolderEmbedder, FolderEncoder, FolderReranker
from ragistry.models.folder_files import ModelFolder, free_memory, layers_of

PAIRS = (
    ("How often should I water a cactus?", "A cactus needs water every two to four weeks."),
    ("What is the capital of France?", "Paris is the capital and largest city of France."),
    ("Why does the screen stay dark?", "If the display does not turn on, check its power cable."),
    ("How do I reset my password?", "Choose 'Forgotten password' on the sign-in page to set a new one."),
    ("When was the bridge opened?", "The bridge was opened to traffic in May 1937."),
    ("Which bread has no gluten?", "Loaves made of rice flour are suitable for people with coeliac disease."),
    ("How much does the ticket cost?", "A day pass is 12 euros; children pay half."),
    ("Who wrote the report?", "The study was prepared by the Institute of Hydrology."),
    ("How are invoices paid?", "We accept bank transfer and direct debit within 30 days."),
    ("What do bees eat?", "Honey bees feed on nectar and pollen from flowers."),
)
TEXTS = 40
"""Number of passages that are embedded to measure the speed."""


def look_at(path: Path, *, measure: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield what a folder has, name by name; the size comes before the model is loaded. Raises `ModelError`."""
    files = ModelFolder(path)
    yield "folder", str(files.path)
    yield "file", (files.onnx or files.path / str(files.static)).relative_to(files.path).as_posix()
    yield "megabytes", round(files.size() / 1e6, 1)
    yield "megabytes of free memory", free_memory() // 1_000_000
    task = str((files.json("config.json").get("architectures") or [""])[0])
    if task.endswith("ForSequenceClassification"):
        yield from _ranked(FolderReranker(path=str(path)))
    elif task.endswith("ForMaskedLM"):
        encoder = FolderEncoder(path=str(path))
        questions, answers = (encoder.encode(texts, role=role) for texts, role in _sides())
        yield "kind", "sparse encoder: `encoders: {NAME: {use: folder, path: …}}`"
        yield "terms of a passage", round(sum(map(len, answers)) / len(answers))
        scores = [[sum(q[t] * a.get(t, 0) for t in q) for a in answers] for q in questions]
        yield "questions whose answer is first", f"{_first(scores)} of {len(PAIRS)}"
    else:
        yield from _embedded(FolderEmbedder(str(path)), files, measure=measure)


def _sides() -> list[tuple[list[str], Any]]:
    return [([question for question, _ in PAIRS], "query"), ([answer for _, answer in PAIRS], "document")]


def _first(scores: Any) -> int:
    return sum(max(range(len(row)), key=row.__getitem__) == place for place, row in enumerate(scores))


def _ranked(reranker: FolderReranker) -> Iterator[tuple[str, Any]]:
    yield "kind", "reranker: `rerankers: {NAME: {use: folder, path: …}}`"
    [(questions, _), (answers, _)] = _sides()
    scores = [reranker.rerank(question, answers) for question in questions]
    yield "questions whose answer is first", f"{_first(scores)} of {len(PAIRS)}"


def _embedded(embedder: FolderEmbedder, files: ModelFolder, *, measure: bool) -> Iterator[tuple[str, Any]]:
    start = perf_counter()
    fingerprint = embedder.fingerprint
    loading = perf_counter() - start
    yield "kind", f"embedder: `embed_model: folder:{files.path}`"
    yield "dimension", fingerprint.dimension
    yield "tokens at most", fingerprint.max_tokens or "no limit"
    if files.onnx is not None:
        pooling, after, before = layers_of(files)
        yield "output", embedder.output
        yield "pooling", pooling
        yield "layers", " ".join(f"{one.weight.shape[1]}→{one.weight.shape[0]}" for one in (*before, *after)) or "none"
    yield "prompt of queries", repr(fingerprint.query_prefix)
    yield "prompt of documents", repr(fingerprint.document_prefix)
    questions, answers = (embedder.embed(texts, role=role) for texts, role in _sides())
    yield "questions whose answer is first", f"{_first((questions @ answers.T).tolist())} of {len(PAIRS)}"
    if measure:
        yield "seconds to load", round(loading, 2)
        passages = [f"{answer} " * 12 for _, answer in PAIRS] * (TEXTS // len(PAIRS))
        start = process_time()
        embedder.embed(passages)
        yield f"passages of {len(passages[0])} characters a CPU-second", round(TEXTS / (process_time() - start), 1)
        start = process_time()
        for question, _ in PAIRS:
            embedder.embed([question], role="query")
        yield "CPU-ms a query", round(100 * (process_time() - start), 1)
