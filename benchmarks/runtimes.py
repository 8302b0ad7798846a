"""The runtimes of the embedded model: CPU time of each over that of onnxruntime, and the least cosine.

    python -m benchmarks.runtimes [--quick]

The sides take turns, and the ratio is the median over the blocks. Where the processor has bfloat16, OpenVINO computes
in it; elsewhere both compute in float32. The cosines are those of whole passages of SciFact.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from benchmarks.embedder import DATA, read_scifact, split
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.models.runtimes import has_bfloat16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the passages")
    quick = parser.parse_args().quick
    if not Path(DATA / "scifact").is_dir():
        print(f"skipped: no {DATA / 'scifact'}")
        return
    logging.getLogger("ragistry").setLevel(logging.ERROR)
    passages, _ = read_scifact(DATA / "scifact", 100 if quick else 1_000)
    sides = [MiniLMEmbedder(runtime="onnxruntime"), MiniLMEmbedder(runtime="openvino")]
    starts = [seconds(side, ["warm up"])[0] for side in sides]
    ratios, least = [], 1.0
    for number, block in enumerate(split(passages, 20)):
        done = {side: seconds(side, block) for side in (sides if number % 2 else sides[::-1])}
        (base, expected), (other, vectors) = done[sides[0]], done[sides[1]]
        ratios.append(other / base)
        least = min(least, float(np.einsum("ij,ij->i", expected, vectors).min()))
    print(f"{len(passages)} passages of SciFact; bfloat16 in the processor: {'yes' if has_bfloat16() else 'no'}\n")
    print("| runtime | load, CPU-s | CPU time, median ratio | 1 - least cosine |\n|---|--:|--:|--:|")
    print(f"| {sides[0].runtime} | {starts[0]:.2f} | 1 | |")
    print(f"| {sides[1].runtime} | {starts[1]:.2f} | {median(ratios):.2f} | {1 - least:.1e} |")


def seconds(embedder: MiniLMEmbedder, texts: list[str]) -> tuple[float, np.ndarray]:
    start = process_time()
    vectors = embedder.embed(texts)
    return process_time() - start, vectors


if __name__ == "__main__":
    main()
