"""Kill the real `ragistry ingest` at random moments, and look after each kill whether anything was lost."""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ragistry import Workspace, open_workspace

SOURCES, PARTS = 12, 3


def marker(name: str, version: int) -> str:
    """A word that stands in one version of one source only."""
    return f"marker{name}v{version}x"


def write(folder: Path, versions: dict[str, int]) -> None:
    """Every source in its version, three chunks each."""
    for name, version in versions.items():
        parts = [f"{marker(name, version)} part {part}. " + f"About {name} and {part}. " * 25 for part in range(PARTS)]
        (folder / f"{name}.txt").write_text("\n\n".join(parts), encoding="utf-8")


def ingest(root: Path, kill_after: float | None) -> bool:
    """Run the command in a process of its own; True where it was killed before it had ended."""
    command = [sys.executable, "-m", "ragistry", "ingest", "in", "--collection", "notes", "--json"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            _, errors = process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return True
    if process.returncode:
        raise SystemExit(f"the ingest failed: {errors.decode()}")
    return False


def examine(root: Path, before: dict[str, int], after: dict[str, int]) -> tuple[Counter[str], set[str]]:
    """Count what is wrong, and tell which sources are in their new version."""
    found: Counter[str] = Counter()
    changed: set[str] = set()
    with open_workspace(root) as workspace:
        texts: dict[str, list[str]] = {}
        for document in workspace.store.scan():
            texts.setdefault(Path(document.metadata["source_file"]).stem, []).append(document.content)
        for name in after:
            contents = " ".join(sorted(texts.get(name, [])))
            versions = {v for v in (before.get(name), after[name]) if v is not None and marker(name, v) in contents}
            found["lost"] += name in before and not versions
            found["torn"] += len(versions) > 1 or (bool(versions) and contents.count("part ") != PARTS)
            if versions == {after[name]}:
                changed.add(name)
            for version in versions:
                hits = workspace.technique("bm25").retrieve(marker(name, version), top_k=1)
                found["words not found"] += not hits or marker(name, version) not in hits[0].content
        found["files damaged"] += len(workspace.store.verify())  # type: ignore[attr-defined]
        found["chunks"], found["not at rank 1"] = self_search(workspace)
    return found, changed


def self_search(workspace: Workspace) -> tuple[int, int]:
    """How many chunks there are, and how many are not the first that their own vector finds."""
    documents = list(workspace.store.scan())
    vectors = workspace.store.vectors([document.id for document in documents])  # type: ignore[attr-defined]
    missed = sum(
        workspace.store.search(vector, 1)[0].content != document.content
        for document, vector in zip(documents, vectors, strict=True)
    )
    return len(documents), missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--quick", action="store_true", help="ten kills")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    wanted = 10 if arguments.quick else arguments.kills
    print(f"seed {arguments.seed}")
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "in").mkdir()
        versions = {f"s{number}": 0 for number in range(SOURCES)}
        write(root / "in", versions)
        start = time.perf_counter()
        ingest(root, None)
        whole = time.perf_counter() - start
        while total["kills"] < wanted:
            new = {name: version + (chance.random() < 0.7) for name, version in versions.items()}
            write(root / "in", new)
            # Half of the kills in the last part of the run, where it writes.
            killed = ingest(root, whole * chance.uniform(*chance.choice([(0.0, 1.0), (0.6, 1.1)])))
            found, changed = examine(root, versions, new)
            total += found
            total["kills"] += killed
            due = {name for name in new if new[name] != versions[name]}
            total["kills between two writes"] += killed and bool(due & changed) and bool(due - changed)
            versions |= {name: new[name] for name in changed}
    rows = ("kills", "kills between two writes", "lost", "torn", "words not found", "files damaged", "not at rank 1")
    print("| what | times |\n|---|--:|")
    for row in rows:
        print(f"| {row} | {total[row]} |")
    print(f"| chunks found by their own vector at rank 1 | {1 - total['not at rank 1'] / total['chunks']:.3%} |")
    print(json.dumps({"seed": arguments.seed, **{row: total[row] for row in rows}}))


if __name__ == "__main__":
    main()
