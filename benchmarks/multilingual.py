"""Search in four languages: nDCG@10 by vectors, by words and by both, and the speed of the two embedded embedders.

    python -m benchmarks.multilingual [--quick]

The sets are the XQuAD paragraphs, the same 240 in each language, with 1,190 questions. They are looked for in
RAGISTRY_DATA, else in ../shared/data beside the repository. Speed is texts per second of CPU time, queries and passages
apart; it counts the tokenizer and all threads.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.scifact import DATA, judgements, ndcg, records
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.models.multilingual import MultilingualEmbedder
from ragistry.protocols import Embedder
from ragistry.stores.local import LocalStore
from ragistry.techniques.fusion import distinct, fused_documents, prominences, scores_of, spreads_of
from ragistry.text.detection import detect_language
from ragistry.types import Document, EmbeddedChunk, Role

LANGUAGES = {"xquad-en": "english", "xquad-de": "german", "xquad-es": "spanish", "xquad-zh": "chinese"}
FETCH = 100
Rankings = list[list[Document]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="every tenth question")
    step = 10 if parser.parse_args().quick else 1
    if not DATA.is_dir():
        raise SystemExit(f"no data at {str(DATA)!r}; set RAGISTRY_DATA to the folder that has xquad-en/")
    logging.getLogger("ragistry").setLevel(logging.ERROR)  # MiniLM cuts paragraphs at 256 tokens
    embedders: dict[str, Embedder] = {"minilm": MiniLMEmbedder(), "multilingual": MultilingualEmbedder()}
    for embedder in embedders.values():
        embedder.embed(["loaded before the clock starts"])
    results = [measured(name, language, embedders, step) for name, language in LANGUAGES.items()]
    columns = list(results[0])
    print(f"| {' | '.join(columns)} |\n|---|---{'|--:' * (len(columns) - 2)}|")
    for result in results:
        print(f"| {' | '.join(result.values())} |")


def measured(name: str, language: str, embedders: dict[str, Embedder], step: int) -> dict[str, str]:
    """One row: a column's title to what it shows."""
    qrels = judgements(DATA / name)
    corpus = {item["_id"]: item["text"] for item in records(DATA / name, "corpus.jsonl")}
    questions = {item["_id"]: item["text"] for item in records(DATA / name, "queries.jsonl") if item["_id"] in qrels}
    questions = dict(list(questions.items())[::step])
    detected = detect_language(list(corpus.values()))
    row = {"set": name, "detected": detected.language if detected else "-"}

    def scored(title: str, rankings: Rankings) -> Rankings:
        values = [
            ndcg([document.id for document in ranking], qrels[key])
            for key, ranking in zip(questions, rankings, strict=True)
        ]
        row[title] = f"{mean(values):.3f}"
        return rankings

    texts = list(questions.values())
    words = scored("bm25", by_words(corpus, texts, language))
    scored("bm25, english", by_words(corpus, texts, "english"))
    speeds = {}
    for title, embedder in embedders.items():
        passages, passage_speed = timed(embedder, list(corpus.values()), "document")
        queries, query_speed = timed(embedder, texts, "query")
        vectors = scored(title, by_vectors(corpus, passages, queries))
        scored(f"{title} + bm25, RRF", fused(vectors, words, partial(fused_documents, fusion="rrf")))
        scored(f"{title} + bm25, default", fused(vectors, words, as_hybrid_does))
        speeds[f"{title}: passages/s, queries/s"] = f"{passage_speed:.1f}, {query_speed:.0f}"
    return row | speeds


def timed(embedder: Embedder, texts: Sequence[str], role: Role) -> tuple[np.ndarray, float]:
    """The vectors ``(n, d)``, and texts per second of CPU time."""
    start = time.process_time()
    vectors = embedder.embed(texts, role=role)
    return vectors, len(texts) / (time.process_time() - start)


def by_words(corpus: dict[str, str], questions: Sequence[str], language: str) -> Rankings:
    with tempfile.TemporaryDirectory() as folder, closing(LocalStore(Path(folder), language=language)) as store:
        store.add_documents([EmbeddedChunk(text, {}, [1.0]) for text in corpus.values()], ids=list(corpus))
        return [store.search_text(question, FETCH) for question in questions]


def by_vectors(corpus: dict[str, str], passages: np.ndarray, queries: np.ndarray) -> Rankings:
    documents = list(corpus.items())
    rankings = []
    for scores in (queries @ passages.T).tolist():
        order = sorted(range(len(scores)), key=lambda position: (-scores[position], documents[position][0]))[:FETCH]
        rankings.append([Document(documents[i][1], {}, scores[i], documents[i][0]) for i in order])
    return rankings


def fused(left: Rankings, right: Rankings, fusion: Callable[[Rankings], list[Document]]) -> Rankings:
    return [fusion([one, other]) for one, other in zip(left, right, strict=True)]


def as_hybrid_does(rankings: Rankings) -> list[Document]:
    """Fusion as `HybridTechnique` does it by default."""
    scores = [scores_of(distinct(ranking)) for ranking in rankings]
    return fused_documents(rankings, "dbsf", weights=prominences(scores, spreads_of(scores)))


if __name__ == "__main__":
    main()
