"""Continue the ingest of another version that was killed: ``python -m benchmarks.continued [--quick] [REVISION …]``.

The code of each revision of this repository (default: the last one of formats 10, 11 and 12) ingests a folder of 500
files, and is killed at a random moment. The present code continues. Before and afterwards, every written source must be
found by its words, and by its vector or be counted as waiting; at the end, all 500 are found by both. The older code
must refuse the library in one line if its format is older than the present one. Embeddings cost nothing.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REVISIONS = ("798c083", "c8c2d29", "9a7b05d")
FILES, KILLS = 500, 4

WORK = """
import sys, time
import ragistry.workspace
from ragistry import open_workspace
from ragistry.testing.hashed import HashingEmbedder
embedder = HashingEmbedder(64)
ragistry.workspace.choose_embedder = lambda *_, **__: embedder
def step(*_):
    print(".", flush=True)
    time.sleep(0.001)
embedder.check = step
with open_workspace(sys.argv[1]) as workspace:
    if "notes" not in [one.name for one in workspace.library.collections.entries()]:
        workspace.library.create_collection("notes")
    print("ready", flush=True)
    report = workspace.library.ingest_folder(sys.argv[2], "notes", progress=step)
    print("done", len(report.added), len(report.failed), flush=True)
"""
"""A program that every revision can run: it ingests a folder, and prints a line for each step."""


def text_of(number: int) -> str:
    return (
        f"word{number} stands in this file only. " + f"Part {number % 7} of the manual tells about valve{number}. " * 9
    )


def unpacked(revision: str, folder: Path) -> Path:
    """Write the package of a revision into a folder."""
    packed = subprocess.run(["git", "archive", revision, "ragistry"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def begin(code: Path, library: Path, files: Path) -> subprocess.Popen[str]:
    """Start an ingest by the code in a folder."""
    environment = os.environ | {"PYTHONPATH": str(code)}
    return subprocess.Popen(
        [sys.executable, "-c", WORK, str(library), str(files)], cwd=library, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def look(library: Path) -> tuple[int, int, list[str]]:
    """Return the numbers of sources and of those that wait, and what is wrong, as the present code sees it."""
    import ragistry.workspace
    from ragistry import open_workspace
    from ragistry.testing.hashed import HashingEmbedder

    ragistry.workspace.choose_embedder = lambda *_, **__: HashingEmbedder(64)
    with open_workspace(library) as workspace:
        wrong = list(workspace.store.verify())
        infos = workspace.library.sources("notes")
        for info in infos:
            number = int(info.source_file.partition(".")[0])
            for query, technique in ((f"word{number}", "bm25"), (text_of(number), "naive")):
                found = workspace.search(query, technique, top_k=1).documents
                if technique == "naive" and info.waiting:
                    continue
                if not found or found[0].metadata["source_file"] != info.source_file:
                    wrong.append(f"{info.source_file} is not found by {technique}")
        return len(infos), sum(bool(info.waiting) for info in infos), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs="*", default=REVISIONS, help=f"[{' '.join(REVISIONS)}]")
    parser.add_argument("--quick", action="store_true", help="one kill for each revision")
    parser.add_argument("--seed", type=int, default=1, help="decides where the kills fall")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print("| earlier version | written | waiting | wrong | continued | wrong | the earlier version then says |")
    print("|---|--:|--:|--:|--:|--:|---|")
    for revision in options.revisions:
        for number in range(1 if options.quick else KILLS):
            # In the first pass, else at its end or after it
            steps = rng.randrange(FILES // 2 + 20, FILES) if number % 2 else FILES + rng.randrange(4)
            with tempfile.TemporaryDirectory() as folder:
                print(row(revision, Path(folder), steps), flush=True)


def row(revision: str, folder: Path, steps: int) -> str:
    """Kill an ingest of the revision after this many steps, and return a row of the table."""
    library, files, code = folder / "library", folder / "files", unpacked(revision, folder / "code")
    for made in (library, files):
        made.mkdir()
    for number in range(FILES):
        (files / f"{number}.txt").write_text(text_of(number), encoding="utf-8")
    process = begin(code, library, files)
    assert process.stdout is not None
    for _ in range(steps):
        process.stdout.readline()
    process.kill()
    process.communicate()
    written, waiting, wrong = look(library)
    process = begin(ROOT, library, files)
    process.communicate()
    sources, _, left = look(library)
    left += [] if (process.returncode, sources) == (0, FILES) else [f"exit code {process.returncode}"]
    _, errors = begin(code, library, files).communicate()
    said = errors.strip().splitlines()[-1].partition("(")[2] if errors.strip() else "nothing; it opens it"
    return (
        f"| {revision} | {written} | {waiting} | {'; '.join(wrong[:3]) or 0} | {sources} | {'; '.join(left[:3]) or 0} "
        f"| {said} |"
    )


if __name__ == "__main__":
    main()
