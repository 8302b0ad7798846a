"""Do titles and headings help? Pages of two documentation trees, searched by their title and by their description.

``python -m benchmarks.headings [--quick]``. Each tree is ingested twice, with ``index_headings`` on and off. A query is
a page's title, or the description in its front matter, which is indexed in neither case. A hit is a chunk of that page.
Printed is RR@10, and the 95 % interval of the difference (bootstrap over pages).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ragistry import Workspace, open_workspace
from ragistry.readers.front_matter import split

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
TREES = ("docs-hugo", "docs-etcd")
TECHNIQUES = ("bm25", "naive", "hybrid")
KINDS = ("title", "description")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="BM25 alone")
    techniques = TECHNIQUES[:1] if parser.parse_args().quick else TECHNIQUES
    print("| tree | query | pages | technique | text alone | with headings | difference |")
    print("|---|---|--:|---|--:|--:|---|")
    for tree in TREES:
        folder = DATA / tree
        queries = {kind: _queries(folder, kind) for kind in KINDS}
        ranks = {on: _all_ranks(folder, queries, techniques, headings=on) for on in (False, True)}
        for kind in KINDS:
            for technique in techniques:
                off, on = (ranks[headings][kind, technique] for headings in (False, True))
                means = f"{off.mean():.3f} | {on.mean():.3f} | {_gain(on - off)}"
                print(f"| {tree} | {kind} | {len(on)} | {technique} | {means} |")


def _queries(folder: Path, kind: str) -> dict[str, str]:
    """By source, what the front matter of each page says."""
    found = {}
    for path in sorted(folder.rglob("*.md")):
        said = split(path.read_text(encoding="utf-8").replace("\r\n", "\n")).metadata.get(kind)
        if said:
            found[path.relative_to(folder).as_posix()] = str(said)
    return found


def _all_ranks(
    folder: Path, queries: dict[str, dict[str, str]], techniques: tuple[str, ...], *, headings: bool
) -> dict[tuple[str, str], np.ndarray]:
    with TemporaryDirectory() as home, open_workspace(home, index_headings=headings) as workspace:
        workspace.library.create_collection("docs", "Documentation")
        workspace.library.ingest_folder(folder, "docs")
        return {
            (kind, technique): np.array([_rank(workspace, technique, query, name) for name, query in by_name.items()])
            for kind, by_name in queries.items()
            for technique in techniques
        }


def _rank(workspace: Workspace, technique: str, query: str, name: str) -> float:
    """1 / the rank of the first chunk of the page, 0 below ten."""
    found = workspace.search(query, technique, top_k=10).documents
    return next((1 / rank for rank, one in enumerate(found, 1) if one.metadata["source_file"] == name), 0.0)


def _gain(differences: np.ndarray) -> str:
    means = np.random.default_rng(16).choice(differences, (4_000, len(differences))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{differences.mean():+.3f} ({low:+.3f} to {high:+.3f})"


if __name__ == "__main__":
    main()
