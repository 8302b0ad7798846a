"""The page under load: ``python -m benchmarks.page [--quick]``. Needs Chromium.

Two bars: with 10,000 sources in a collection the first of them are shown within 1 s; while 1,000 files are taken in, a
search from the page is answered within 500 ms (p95). Both are measured in a real browser, from click to what is shown.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from playwright.sync_api import Page, sync_playwright

from ragistry import open_workspace

WORDS = ("valve", "rotor", "ledger", "harvest", "glacier", "lantern", "harbour", "copper", "violin", "saddle")
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


def text(number: int) -> str:
    """A short text of its own for each number."""
    chosen = [WORDS[(number // 10**place) % 10] for place in range(4)]
    return f"Entry {number}: the {chosen[0]} of the {chosen[1]} lies behind the {chosen[2]}, under the {chosen[3]}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 sources and 100 files")
    parser.add_argument("--seconds", type=float, default=1_800, help="ask for so long at most")
    options = parser.parse_args()
    sources, files = (1_000, 100) if options.quick else (10_000, 1_000)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "workspace"
        folder = root / "papers"
        folder.mkdir(parents=True)
        fill(root, folder, sources)
        for number in range(files):
            (folder / f"paper-{number:05}.md").write_text("\n\n".join(text(number * 40 + line) for line in range(40)))
        command = [sys.executable, "-m", "ragistry", "-w", str(root), "ui", "--port", "0", "--no-browser"]
        with subprocess.Popen([*command, "--root", str(root)], stdout=subprocess.PIPE, text=True) as server:
            try:
                address = server.stdout.readline().split()[3] if server.stdout else ""
                measure(address, folder, sources, files, options.seconds)
            finally:
                server.terminate()


def fill(root: Path, folder: Path, sources: int) -> None:
    """A collection of that many sources, and an empty one."""
    many = folder.parent / "many"
    many.mkdir()
    for number in range(sources):
        (many / f"entry-{number:05}.md").write_text(text(number))
    with open_workspace(root) as workspace:
        workspace.library.create_collection("many", "Many short sources")
        workspace.library.create_collection("papers", "Taken in while it is searched")
        workspace.library.ingest_folder(many, "many")
    shutil.rmtree(many)


def measure(address: str, folder: Path, sources: int, files: int, most: float) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(CHROMIUM))
        page = browser.new_page()
        first = [until_rows(page, f"{address}collection/many") for _ in range(5)]
        ask(page, address)  # the model is loaded by the first question
        page.goto(f"{address}collection/papers")
        page.get_by_label("Folder on this machine").fill(str(folder))
        page.get_by_role("button", name="Add folder").click()
        start, answers = perf_counter(), []
        other = browser.new_page()
        while page.get_by_text(f"{files} added").count() == 0 and perf_counter() - start < most:
            answers.append(ask(other, address))
        seconds = perf_counter() - start
        browser.close()
    p95 = statistics.quantiles(answers, n=20)[-1] if len(answers) > 1 else answers[0]
    print("| work | measured | at most |\n|---|--:|--:|")
    print(f"| first page of {sources:,} sources, median of 5 | {statistics.median(first) * 1000:.0f} ms | 1,000 ms |")
    print(
        f"| search while {files:,} files are taken in ({seconds:.0f} s), p50 | "
        f"{statistics.median(answers) * 1000:.0f} ms | |"
    )
    print(f"| the same, p95 of {len(answers)} | {p95 * 1000:.0f} ms | 500 ms |")


def until_rows(page: Page, address: str) -> float:
    start = perf_counter()
    page.goto(address)
    page.get_by_role("row", name="entry-00000.md").wait_for()
    return perf_counter() - start


def ask(page: Page, address: str) -> float:
    """Seconds from pressing Search to the passages."""
    page.goto(f"{address}search")
    page.get_by_label("What to look for").fill(f"what lies behind the {WORDS[int(perf_counter() * 10) % 10]}?")
    button = page.get_by_role("button", name="Search")
    start = perf_counter()
    button.click()
    page.get_by_role("article").first.wait_for()
    return perf_counter() - start


if __name__ == "__main__":
    main()
