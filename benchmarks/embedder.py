"""The embedded embedder against Chroma's default embedding function, same weights, same texts, in one run.

    python -m benchmarks.embedder [--quick]

Chroma's function runs its own code (one text after the other through the tokenizer, 32 to a batch, all padded to 256
tokens); it finds the weights that Ragistry uses where it would otherwise download its own. The sides take turns,
block by block, and a ratio is the median over the blocks, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

from ragistry.models.minilm import MiniLMEmbedder, load_tokenizer, read_weights

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CHROMAS_FILES = (
    "config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.txt",
)  # it only looks for them
OURS_COLD = "from ragistry.models.minilm import MiniLMEmbedder; MiniLMEmbedder().embed([{query!r}], role='query')"
CHROMAS_COLD = """
from pathlib import Path
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2 as Function
Function.DOWNLOAD_PATH = Path({folder!r})
Function()([{query!r}])
"""

Embed = Callable[[Sequence[str]], object]


class Row(NamedTuple):
    """One line of the table; ``ratio`` is ours over Chroma's, in the unit that the line names."""

    work: str
    ours: str
    chroma: str
    ratio: float
    bar: str
    met: bool | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the texts: under a minute")
    quick = parser.parse_args().quick
    if not (DATA / "scifact").is_dir():
        print(f"skipped: no {DATA / 'scifact'}")
        return
    # Most passages of SciFact are cut at 256 tokens; said once here, not in a warning a block.
    logging.getLogger("ragistry").setLevel(logging.ERROR)
    blocks, size = (2, 40) if quick else (5, 80)
    passages, queries = read_scifact(DATA / "scifact", blocks * size)
    with tempfile.TemporaryDirectory() as folder:
        write_chromas_files(Path(folder))
        function = type("Function", (ONNXMiniLM_L6_V2,), {"DOWNLOAD_PATH": Path(folder)})()
        ours, chroma = MiniLMEmbedder().embed, function
        check_agreement(ours(passages[:8]), np.array(chroma(passages[:8])))
        rows = [
            throughput("passages", split(passages, size), ours, chroma, bar=0.95),
            throughput("queries", split(queries, size), ours, chroma, bar=4),
            latency(queries[: 10 if quick else 40], ours, chroma),
            cold_start(queries[0], folder, runs=2 if quick else 5),
        ]
    print(f"{blocks * size} passages and {blocks * size} queries of SciFact, {os.cpu_count()} cores\n")
    print("| work | Ragistry | Chroma's default | ratio | bar | met |\n|---|--:|--:|--:|---|---|")
    for row in rows:
        met = {True: "yes", False: "NO", None: ""}[row.met]
        print(f"| {row.work} | {row.ours} | {row.chroma} | {row.ratio:.2f} | {row.bar} | {met} |")


def read_scifact(folder: Path, count: int) -> tuple[list[str], list[str]]:
    """``count`` passages (title and abstract) and as many queries, evenly spread over the set."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        passages = [f"{row['title']} {row['text']}" for row in map(json.loads, lines)]
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        queries = [json.loads(line)["text"] for line in lines]
    return passages[:: len(passages) // count][:count], queries[:: len(queries) // count][:count]


def write_chromas_files(folder: Path) -> None:
    """What Chroma's function would have downloaded, made of the weights and vocabulary that Ragistry uses."""
    extracted = folder / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    extracted.mkdir()
    (extracted / "model.onnx").write_bytes(read_weights())
    load_tokenizer().save(str(extracted / "tokenizer.json"))
    for name in CHROMAS_FILES:
        (extracted / name).touch()


def check_agreement(ours: np.ndarray, chroma: np.ndarray) -> None:
    worst = float(np.einsum("ij,ij->i", ours, chroma).min())
    if worst < 0.999:
        raise SystemExit(f"the sides do not compute the same vectors: cosine {worst:.4f}; the comparison means nothing")


def split(texts: list[str], size: int) -> list[list[str]]:
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def seconds(embed: Embed, texts: Sequence[str]) -> float:
    start = perf_counter()
    embed(texts)
    return perf_counter() - start


def in_turns(ours: Embed, chroma: Embed, blocks: list[list[str]]) -> tuple[list[float], list[float]]:
    """Seconds a block on each side; who goes first changes from block to block."""
    times: dict[Embed, list[float]] = {ours: [], chroma: []}
    for number, block in enumerate(blocks):
        for embed in (ours, chroma) if number % 2 else (chroma, ours):
            times[embed].append(seconds(embed, block))
    return times[ours], times[chroma]


def throughput(work: str, blocks: list[list[str]], ours: Embed, chroma: Embed, bar: float) -> Row:
    our_times, chroma_times = in_turns(ours, chroma, blocks)
    texts = sum(map(len, blocks))
    ratio = median(theirs / mine for mine, theirs in zip(our_times, chroma_times, strict=True))
    our_rate, chroma_rate = f"{texts / sum(our_times):.1f}", f"{texts / sum(chroma_times):.1f}"
    return Row(f"{work}, texts/s", our_rate, chroma_rate, ratio, f"at least {bar} times", ratio >= bar)


def latency(queries: list[str], ours: Embed, chroma: Embed) -> Row:
    our_times, chroma_times = in_turns(ours, chroma, [[query] for query in queries])
    ratio = median(mine / theirs for mine, theirs in zip(our_times, chroma_times, strict=True))
    our_ms, chroma_ms = f"{median(our_times) * 1000:.1f}", f"{median(chroma_times) * 1000:.1f}"
    return Row("single query, ms", our_ms, chroma_ms, ratio, "at most 0.25 times", ratio <= 0.25)


def cold_start(query: str, folder: str, runs: int) -> Row:
    """A new process: imports, load and first query."""
    scripts = [OURS_COLD.format(query=query), CHROMAS_COLD.format(query=query, folder=folder)]
    ours, chroma = (median(process_seconds(script) for _ in range(runs)) for script in scripts)
    return Row("cold start to first vector, s", f"{ours:.2f}", f"{chroma:.2f}", ours / chroma, "", None)


def process_seconds(script: str) -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    return perf_counter() - start


if __name__ == "__main__":
    main()
