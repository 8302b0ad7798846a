"""Is the answer on the screen? ``python -m benchmarks.shown [--quick] [--misses]``.

The questions of `shown_data` are asked with default settings of one library that contains the shared PDFs, the
documentation of etcd and of Hugo, and generated office files. For each question whose answer is in the passages that
the search returns, three things are measured:

- shell: the answer is in the first 60 lines that ``ragistry search`` prints in a terminal of 100 columns;
- page: it is on the first screen of the page, of 1280 x 850 pixels;
- place: where it is shown, the nearest place above it (page, slide, sheet or heading) is one that has the answer.

``--quick`` leaves out the page, ``--misses`` lists what is not shown. Texts are compared without markup and separators.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from benchmarks.quality import DATA
from benchmarks.shown_data import QUESTIONS, Question, write_office_files
from ragistry import Workspace, open_workspace
from ragistry.readers.extract import extract
from ragistry.readers.extracted import Extracted
from ragistry.readers.markdown import outline
from ragistry.types import Document

LINES, COLUMNS = 60, 100
WIDTH, HEIGHT = 1280, 850
_OTHER = re.compile(r"[^\w$%./#€-]+")
_ANSI = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\")
_HEAD = re.compile(r"\x1b\[1m\d+\. ")
_DIM = re.compile(r"[ ]*\x1b\[2m")
WORDS_ON_SCREEN = """() => [...document.querySelectorAll('article')].map(card => {
  const words = [], walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const place = node.parentElement.closest('.rg-place') !== null;
    for (const match of node.data.matchAll(/\\S+/g)) {
      range.setStart(node, match.index); range.setEnd(node, match.index + match[0].length);
      const box = range.getBoundingClientRect();
      if (box.width && box.top >= 0 && box.bottom <= innerHeight) words.push([match[0], place]);
    }
  }
  return words;
})"""


class Line(NamedTuple):
    """A line of a result on a screen. ``is_place``: whether it names a place instead of text of the document."""

    text: str
    is_place: bool


Card = list[Line]


class Outcome(NamedTuple):
    """Where an answer is. ``place_shell``, ``place_page``: whether the named place is right; None if it is hidden."""

    question: Question
    passages: bool
    shell: bool
    page: bool
    place_shell: bool | None
    place_page: bool | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without the page")
    parser.add_argument(
        "--misses", action="store_true", help="list the answers that are not shown, or in a wrong place"
    )
    parser.add_argument("--folder", type=Path, help="keep the library here, and use it if it is here already")
    options = parser.parse_args()
    for name in ("pdfs", "docs-etcd", "docs-hugo"):
        if not (DATA / name).is_dir():
            sys.exit(f"skipped: {name} is not in {DATA}")
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        home, folders = make_library(folder)
        report(list(outcomes(home, folders, quick=options.quick)), quick=options.quick, misses=options.misses)


def make_library(folder: Path) -> tuple[Path, dict[str, Path]]:
    """Return a workspace with all documents in ``folder``, and the folder of each collection."""
    home, office = folder / "workspace", folder / "office"
    folders = {collection: DATA / collection for collection in QUESTIONS} | {"office": office}
    if not home.is_dir():
        office.mkdir(parents=True)
        write_office_files(office)
        home.mkdir()
        with open_workspace(home) as workspace:
            for collection, place in folders.items():
                workspace.library.create_collection(collection)
                workspace.library.ingest_folder(place, collection)
    return home, folders


def outcomes(home: Path, folders: dict[str, Path], *, quick: bool) -> Iterator[tuple[str, Outcome]]:
    """Ask every question."""
    texts: dict[Path, Extracted] = {}
    with open_workspace(home) as workspace, _screens(home, quick=quick) as screen:
        for collection, questions in QUESTIONS.items():
            for question in questions:
                path = folders[collection] / question.source
                if path not in texts:
                    texts[path] = extract(path)
                truths = places_of(texts[path], question.answer)
                if not truths:
                    sys.exit(f"{question.source} has no {question.answer!r}")
                cards = shell_cards(home, question.query)
                found = is_in_passages(workspace, collection, question)
                in_shell = named_place(cards, collection, question)
                on_page = named_place(screen(question.query), collection, question)
                yield (
                    collection,
                    Outcome(
                        question,
                        found,
                        in_shell is not None,
                        on_page is not None,
                        None if in_shell is None else fits(in_shell, truths),
                        None if on_page is None else fits(on_page, truths),
                    ),
                )


def report(found: Sequence[tuple[str, Outcome]], *, quick: bool, misses: bool) -> None:
    print("| questions | asked | in the passages | shell | page | place, shell | place, page |\n|---|" + "--:|" * 6)
    for name in [*QUESTIONS, "all"]:
        rows = [one for collection, one in found if name in (collection, "all")]
        held = [one for one in rows if one.passages]
        print(
            f"| {name} | {len(rows)} | {len(held)} | {share([one.shell for one in held])} "
            f"| {'' if quick else share([one.page for one in held])} "
            f"| {share([one.place_shell for one in held if one.place_shell is not None])} "
            f"| {'' if quick else share([one.place_page for one in held if one.place_page is not None])} |"
        )
    if misses:
        for collection, one in found:
            wrong = [
                name
                for name, is_wrong in (
                    ("passages", not one.passages),
                    ("shell", one.passages and not one.shell),
                    ("page", one.passages and not one.page and not quick),
                    ("place in the shell", one.place_shell is False),
                    ("place on the page", one.place_page is False),
                )
                if is_wrong
            ]
            if wrong:
                print(f"{collection}/{one.question.source}: {one.question.query!r}: {', '.join(wrong)}")


def share(values: Sequence[bool | None]) -> str:
    return f"{sum(map(bool, values))} of {len(values)}, {sum(map(bool, values)) / max(1, len(values)):.0%}"


def is_in_passages(workspace: Workspace, collection: str, question: Question) -> bool:
    """Whether a passage of the right source has the answer."""

    def holds(document: Document) -> bool:
        get = document.metadata.get
        right = (get("collection"), get("source_file")) == (collection, question.source)
        return right and has(plain(document.content), question.answer)

    return any(map(holds, workspace.search(question.query).documents))


def named_place(cards: Sequence[Card], collection: str, question: Question) -> str | None:
    """Return the nearest place above the answer, in the card of the right source; None if the answer is not there."""
    source = re.compile(rf"(?<![\w/]){re.escape(plain(question.source))}(?!\w)")
    for card in cards:
        whole = plain(" ".join(line.text for line in card))
        if not (source.search(whole) and has(whole, collection)):
            continue
        segments = [("", "")]
        was_place = False
        for line in card:
            place, text = segments[-1]
            if line.is_place and not was_place:
                segments.append((line.text, ""))
            elif line.is_place:
                segments[-1] = (f"{place} {line.text}", text)
            else:
                segments[-1] = (place, f"{text} {line.text}")
            was_place = line.is_place
        for place, text in segments:
            if has(plain(text), question.answer):
                return place
    return None


def places_of(extracted: Extracted, answer: str) -> set[str]:
    """Return each place of a source that has the answer: ``p. 3``, the name of a sheet, or a heading."""
    words = [re.escape(word) for word in plain(answer).split()]
    pattern = re.compile(r"(?<!\w)" + r"[^\w$%./#€-]+".join(words) + r"(?!\w)", re.IGNORECASE)
    sections = outline(extracted.text) if extracted.format == "markdown" else None
    found = set()
    for match in pattern.finditer(extracted.text):
        places = [place for offset, place in extracted.places if offset <= match.start()][-1:]
        if places and (places[0].page or places[0].sheet):
            found.add(f"p. {places[0].page}" if places[0].page else places[0].sheet)
        elif sections:
            found.add(sections.section_at(match.start(), match.end()).title)
        else:
            found.add("")
    return found


def fits(place: str, truths: set[str]) -> bool:
    """Whether a printed place names one of the places that have the answer."""
    return any(has(plain(place), truth) if truth else " > " not in place for truth in truths)


def has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(plain(words))}(?!\w)", text) is not None


def plain(text: str) -> str:
    """Return the text in lower case, with one blank for all markup and separators between words."""
    return _OTHER.sub(" ", text.casefold()).strip()


def shell_cards(home: Path, query: str) -> list[Card]:
    """Return the results in the first lines that the command prints."""
    from ragistry.cli.app import app

    printed = io.StringIO()
    kept = dict(os.environ)
    os.environ |= {"COLUMNS": str(COLUMNS), "LINES": "60", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    try:
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            app(["-w", str(home), "search", query], prog_name="ragistry", standalone_mode=False)
    finally:
        os.environ.clear()
        os.environ.update(kept)
    cards: list[Card] = []
    for line in printed.getvalue().splitlines()[:LINES]:
        if _HEAD.match(line):
            cards.append([])
        if cards:
            cards[-1].append(Line(_ANSI.sub("", line), _DIM.match(line) is not None))
    return cards


@contextmanager
def _screens(home: Path, *, quick: bool) -> Iterator[Callable[[str], list[Card]]]:
    """Yield a function that returns the results on the first screen of the page for a query."""
    if quick:
        yield lambda _query: []
        return
    import subprocess

    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "ragistry", "-w", str(home), "ui", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        address = server.stdout.readline().split()[3] if server.stdout else ""
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})

        def cards(query: str) -> list[Card]:
            page.goto(f"{address}?q={quote(query)}")
            page.locator("article, .rg-empty").first.wait_for()
            return [[Line(*word) for word in words] for words in page.evaluate(WORDS_ON_SCREEN)]

        try:
            yield cards
        finally:
            browser.close()
            server.terminate()


if __name__ == "__main__":
    main()
