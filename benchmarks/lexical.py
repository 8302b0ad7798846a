"""Search by words: nDCG@10 against published or computed figures. Speed is measured by `local_store`.

    python -m benchmarks.lexical [--quick]

The data are looked for in RAGISTRY_DATA, else in ../shared/data beside the repository; the figures of reference are
those of its READMEs (k1 1.2, b 0.75).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.scifact import DATA, judgements, ndcg, records
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk


class Set(NamedTuple):
    name: str
    language: str
    reference: float | None
    bar: Callable[[float], bool] | None = None
    wanted: str = ""


def within(reference: float, tolerance: float) -> Callable[[float], bool]:
    return lambda score: abs(score - reference) <= tolerance


SETS = (
    Set("scifact", "english", 0.6789, within(0.6789, 0.01), "± .01"),
    Set("xquad-en", "english", 0.963, within(0.963, 0.005), "± .005"),
    Set("xquad-de", "german", 0.940, within(0.940, 0.005), "± .005"),
    Set("xquad-es", "spanish", 0.960, within(0.960, 0.005), "± .005"),
    Set("xquad-zh", "chinese", None, lambda score: score >= 0.95, "≥ .95"),
    Set("cranfield", "english", 0.376),
    Set("cisi", "english", 0.394),
    Set("cacm", "english", 0.521),
    Set("npl", "english", 0.436),
    Set("hotpotqa-pooled500", "english", 0.784),
    Set("hugo-known-item", "english", 0.591),
    Set("claude-docs", "english", 0.702),
    Set("miracl-yo", "none", 0.377),
)


def texts_of(name: str) -> dict[str, str]:
    return {item["_id"]: f"{item.get('title', '')} {item['text']}" for item in records(DATA / name, "corpus.jsonl")}


def quality(data: Set, root: Path) -> float:
    """nDCG@10 over the judged queries of the set."""
    corpus, qrels = texts_of(data.name), judgements(DATA / data.name)
    with closing(LocalStore(root / data.name, language=data.language)) as store:
        store.add_documents(
            [EmbeddedChunk(text.strip() or "-", {}, [1.0]) for text in corpus.values()], ids=list(corpus)
        )
        return mean(
            ndcg([document.id for document in store.search_text(query["text"], 10)], qrels[query["_id"]])
            for query in records(DATA / data.name, "queries.jsonl")
            if query["_id"] in qrels
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the small sets")
    quick = parser.parse_args().quick
    if not DATA.is_dir():
        raise SystemExit(f"no data at {str(DATA)!r}; set RAGISTRY_DATA to the folder that has scifact/")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        print("| set | language | nDCG@10 | reference | difference | asked for | |\n|---|---|--:|--:|--:|--:|---|")
        for data in SETS:
            if quick and not data.name.startswith("xquad"):
                continue
            score = quality(data, root)
            against = f"{data.reference:.4f} | {score - data.reference:+.4f}" if data.reference else "- | -"
            verdict = "" if data.bar is None else "holds" if data.bar(score) else "MISSED"
            print(f"| {data.name} | {data.language} | {score:.4f} | {against} | {data.wanted} | {verdict} |")


if __name__ == "__main__":
    main()
