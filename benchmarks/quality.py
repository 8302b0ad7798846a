"""Quality on every test set at hand, against what was published, and whether hybrid is better than its parts."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragistry import open_workspace
from ragistry.errors import EvaluationError, RagistryError
from ragistry.evaluation import Comparison, Dataset, Text, compare, read_beir
from ragistry.evaluation.figures import Pair
from ragistry.evaluation.statistics import flip_tests, paired

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CACHE = Path(os.environ.get("RAGISTRY_BENCH_CACHE", Path.home() / ".cache" / "ragistry" / "quality"))
TECHNIQUES = ("naive", "bm25", "hybrid")
QUICK = ("claude-docs", "limit-small", "xquad-en")
MAIN = "nDCG@10"
WITHOUT_TITLES = ", text alone"
"""Added to the name of a set, where the published system did not see the titles."""
LANGUAGES = {"xquad-de": "german", "xquad-es": "spanish", "xquad-zh": "none", "miracl-yo": "none"}
"""Of the words of a set, where it is not English; none: no stemming."""


@dataclass(frozen=True)
class Published:
    """A published figure, and the technique of ours that is the same system or the nearest to it."""

    technique: str
    measure: str
    value: float
    by: str


PUBLISHED = {
    "scifact": (
        Published("naive", MAIN, 0.6451, "all-MiniLM-L6-v2, MTEB"),
        Published("bm25", MAIN, 0.6789, "BM25 over one field, Pyserini"),
        Published("bm25", "R@100", 0.925, "BM25 over one field, Pyserini"),
    ),
    "hotpotqa-pooled500": (Published("bm25", MAIN, 0.784, "bm25s, stemmed"),),
    f"hotpotqa-pooled500{WITHOUT_TITLES}": (
        Published("naive", "RR@10", 0.869, "all-MiniLM-L6-v2"),
        Published("bm25", "RR@10", 0.751, "rank_bm25, no stemmer"),
    ),
    "xquad-en": (
        Published("naive", MAIN, 0.944, "all-MiniLM-L6-v2"),
        Published("bm25", MAIN, 0.964, "bm25s, stemmed"),
    ),
    "xquad-de": (
        Published("naive", MAIN, 0.703, "all-MiniLM-L6-v2"),
        Published("bm25", MAIN, 0.941, "bm25s, stemmed"),
    ),
    "xquad-es": (
        Published("naive", MAIN, 0.632, "all-MiniLM-L6-v2"),
        Published("bm25", MAIN, 0.961, "bm25s, stemmed"),
    ),
    "xquad-zh": (Published("bm25", MAIN, 0.122, "bm25s, words by blanks"),),
    "cacm": (
        Published("bm25", "AP", 0.312, "BM25 with author lines, Anserini"),
        Published("bm25", MAIN, 0.521, "bm25s, stemmed, without words of one letter"),
    ),
    "npl": (Published("bm25", MAIN, 0.436, "bm25s, stemmed"),),
    "cranfield": (Published("bm25", MAIN, 0.376, "bm25s, stemmed"),),
    "cisi": (Published("bm25", MAIN, 0.394, "bm25s, stemmed"),),
    "limit-small": (Published("bm25", MAIN, 0.991, "bm25s"),),
    "miracl-yo": (
        Published("bm25", MAIN, 0.406, "BM25, MIRACL"),
        Published("bm25", "R@100", 0.733, "BM25, MIRACL"),
    ),
    "claude-docs": (
        Published("naive", "RR@3", 0.737, "voyage embeddings"),
        Published("bm25", MAIN, 0.702, "bm25s, stemmed"),
    ),
    "hugo-known-item": (Published("bm25", MAIN, 0.591, "bm25s, stemmed"),),
}
"""From the READMEs of the sets. bm25s: Lucene's variant with k1 1.2 and b 0.75, computed over the same files.

The published systems on hotpotqa-pooled500 were given the paragraphs without their titles. Queries of miracl-yo often
lack the marks above and below letters that its texts have: ours searches without them, the published BM25 with them.
"""


def paired_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of the mean difference of paired values."""
    [test] = flip_tests([paired(a, b).tolist()])
    return test.p()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--set", action="append", help="only this set; again for more")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    arguments = parser.parse_args()
    sets = [qrels.parents[1] for qrels in DATA.glob("*/qrels/test.tsv") if any(qrels.parents[1].glob("corpus.jsonl*"))]
    known = sorted({*(path.name for path in sets), *PUBLISHED})
    results, failed = {}, []
    for name in arguments.set or (QUICK if arguments.quick else known):
        folder = DATA / name.removesuffix(WITHOUT_TITLES)
        if folder not in sets:
            print(f"skipped: no {folder}", file=sys.stderr)
            continue
        try:
            results[name] = measured(name, read(folder, titles=folder.name == name), arguments.cache)
            print(f"\r{name}: done{' ' * 40}", file=sys.stderr)
        except RagistryError as error:
            failed.append(name)
            print(f"\r{name} failed: {error}", file=sys.stderr)
    print_quality(results)
    print_published(results)
    sys.exit(1 if failed else 0)


def read(folder: Path, *, titles: bool) -> Dataset:
    """A set as BEIR has it, where the title is the beginning of the text; or without titles."""
    found = read_beir(folder)
    if titles:
        return found
    return replace(found, corpus=[Text(document.id, "", document.text) for document in found.corpus])


def measured(name: str, dataset: Dataset, cache: Path) -> Comparison:
    """All techniques on one set, each tested against hybrid. Raises `EvaluationError` where one fails."""
    measures = dict.fromkeys([MAIN, "R@100", *(figure.measure for figure in PUBLISHED.get(name, ()))])
    language = LANGUAGES.get(name, "english")
    with tempfile.TemporaryDirectory() as root, open_workspace(root, language=language) as opened:
        result = compare(TECHNIQUES, dataset, list(measures), "hybrid", workspace=opened, cache=cache, progress=shown)
    if result.failures:
        raise EvaluationError("; ".join(f"{name}: {one.error}" for name, one in result.failures.items()))
    return result


def shown(doing: str, done: int, of: int) -> None:
    """Progress on standard error."""
    if sys.stderr.isatty():
        print(f"\r{doing} {done:,}/{of:,}   ", end="", file=sys.stderr)


def print_quality(results: dict[str, Comparison]) -> None:
    """A row for each set: the means, and what the tests say of hybrid."""
    print(f"{MAIN}, one chunk a document; tests: paired randomisation, Holm over the two pairs of a set\n")
    print(
        "| set | queries | naive | bm25 | hybrid | hybrid over naive | hybrid over bm25 |\n"
        "|---|--:|--:|--:|--:|---|---|"
    )
    for name, result in results.items():
        means = " | ".join(f"{result.techniques[t].measures[MAIN].mean:.3f}" for t in TECHNIQUES)
        verdicts = " | ".join(against(pair) for pair in result.main_pairs)
        print(f"| {name} | {result.queries} | {means} | {verdicts} |")


def against(pair: Pair) -> str:
    """How hybrid, which is b, does against a part of it."""
    verdict = "no difference shown" if pair.better is None else "better" if pair.better == pair.b else "**worse**"
    return f"{-pair.difference:+.3f}, p {pair.p_holm:.3f}: {verdict}"


def print_published(results: dict[str, Comparison]) -> None:
    """A row for each published figure."""
    print("\n| set | technique | measure | ours | published | difference | of |\n|---|---|---|--:|--:|--:|---|")
    for name, result in results.items():
        for figure in PUBLISHED.get(name, ()):
            ours = result.techniques[figure.technique].measures[figure.measure].mean
            print(
                f"| {name} | `{figure.technique}` | {figure.measure} | {ours:.4f} | {figure.value:.4f} | "
                f"{ours - figure.value:+.4f} | {figure.by} |"
            )


if __name__ == "__main__":
    main()
