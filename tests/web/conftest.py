"""A server over a workspace, and a browser in front of it: one of each for all tests of a process.

Tests that change something make a collection of their own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from ragistry import Workspace, open_workspace
from ragistry.library.asked import FILE, QuestionLog
from ragistry.server.app import saved_jobs
from ragistry.server.jobs import SavedJob
from ragistry.testing.hashed import HashingEmbedder
from ragistry.testing.openai_server import OpenAIServer
from ragistry.web.app_state import AppState
from tests import skips
from tests.library.conftest import embedder  # noqa: F401, the fixture
from tests.library.git_trees import commit
from tests.messages import check_message

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 60_000
"""Milliseconds for what must come: a machine that runs tests is busy."""
expect.set_options(timeout=PATIENCE)
COLLECTIONS = ("handbook", "garden", "desk")
HOSTILE_TEXT = (
    "# <img src=x onerror=alert(1)>\n\nThe rotor <script>alert(2)</script> spins. [click](javascript:alert(3))\n"
)


def find_chromium() -> str:
    """Path of Chromium. Without it the test is skipped, or fails if the variable REQUIRE_BROWSER is 1."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        if REQUIRED:
            pytest.fail(f"REQUIRE_BROWSER is 1, but the PATH has none of {', '.join(BROWSERS)}")
        pytest.skip(skips.CHROMIUM)
    return found


chromium = pytest.fixture(scope="session", name="chromium")(find_chromium)


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium, started."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield opened
        opened.close()


def confirmed(root: Path, question: str) -> list[str]:
    """Hashes of the passages that were confirmed as answers to a question."""
    log = QuestionLog(root / ".ragistry" / FILE).read()
    return [key for one in log if one.text == question for key in one.confirmed]


@contextmanager
def page_process(root: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``ragistry ui`` over a workspace, on a free port, and the address that it prints. Errors go to ``ui.log``."""
    command = [sys.executable, "-m", "ragistry", "-w", str(root), "ui", "--port", "0", "--no-browser", *words]
    with (
        (root / "ui.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=root) as server,
    ):
        try:
            line = server.stdout.readline() if server.stdout else ""
            assert "http://" in line, (root / "ui.log").read_text()
            yield server, line.split()[3]
        finally:
            server.kill()


@contextmanager
def served(root: Path, *words: str) -> Iterator[str]:
    """The address of a page, which logs no error until it is interrupted."""
    with page_process(root, *words) as (server, address):
        yield address
        server.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            server.wait(60)
    errors = [part for part in (root / "ui.log").read_text().split("ERROR:") if "Traceback" in part]
    # Starlette logs this one when a visitor leaves before the answer is there.
    assert [error for error in errors if "RuntimeError: No response returned." not in error] == []


@pytest.fixture(scope="session")
def writer() -> Iterator[OpenAIServer]:
    """The server of the generator that the page asks."""
    with OpenAIServer("small", accent="vllm") as server:
        yield server


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory, fixtures: Path, writer: OpenAIServer) -> Path:
    """The workspace that is served: three collections, which no test changes, a repository, and a generator."""
    root = tmp_path_factory.mktemp("served") / "workspace"
    files, repository = root / "files", root.parent / "widget"
    for folder in (files / "handbook", files / "garden", files / "desk", repository, root / "config"):
        folder.mkdir(parents=True)
    (root / "config" / "models.yaml").write_text(
        f'generators: {{writer: {{use: openai, url: "{writer.url}", model: small}}}}\n'
    )
    (root / "config" / "documents.yaml").write_text("log_questions: true\n")
    operations = fixtures / "handbook" / "operations"
    shutil.copytree(operations, files / "handbook" / "operations")
    for name in ("frost-protection", "slugs-and-snails", "tomato-blight", "watering"):
        shutil.copy(fixtures / "garden" / f"{name}.txt", files / "garden")
    for source in (fixtures / "manuals" / "dishwasher.pdf", operations / "upgrades.md"):
        shutil.copy(source, files / "desk")
    (files / "desk" / "hostile.html.md").write_text(HOSTILE_TEXT)
    parts = [f"## Part {number}\n\n{f'The widget of kind {number} turns a wheel. ' * 30}\n" for number in range(4)]
    commit(repository, {"install.md": "# Install\n\n" + "\n".join(parts)})
    with open_workspace(root) as workspace:
        workspace.repositories.add(repository)
        for name, description in (
            ("handbook", "Operations handbook"),
            ("garden", "Gardening: soil, pests, watering"),
            ("desk", "Papers"),
        ):
            workspace.library.create_collection(name, description, name.capitalize())
            workspace.library.ingest_folder(files / name, name)
        workspace.library.ingest_text("A note about quokkas without a file.", "note", "desk")
    return root


@pytest.fixture(scope="session")
def address(root: Path) -> Iterator[str]:
    """Where the workspace is served, to every test of this process."""
    with served(root, "--root", str(root.parent)) as found:
        yield found.rstrip("/")


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page behind a token whose embedding model is down and whose default technique is misconfigured."""
    root = tmp_path_factory.mktemp("broken")
    (root / "config").mkdir()
    (root / "config" / "documents.yaml").write_text("embed_model: nomic-embed-text\ncollections: [{name: a}]\n")
    (root / "config" / "techniques.yaml").write_text(
        "default: wrong\ntechniques:\n  naive: {use: naive}\n  wrong: {use: bm25, top_kk: 3}\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OLLAMA_HOST", "127.0.0.1:9")
        with served(root, "--host", "127.0.0.2") as found:
            yield found


@pytest.fixture(scope="session")
def other(root: Path, address: str) -> Iterator[Workspace]:
    """The served workspace, as another program has it open."""
    with open_workspace(root) as opened:
        yield opened


@pytest.fixture
def collection(other: Workspace) -> Iterator[Callable[..., str]]:
    """Make a collection in the served workspace; whatever collections a test leaves are deleted after it."""
    library = other.library

    def make(name: str, description: str = "") -> str:
        library.create_collection(name, description)
        return name

    yield make
    for left in library.list_collections():
        if left["name"] not in COLLECTIONS:
            library.delete_collection(left["name"])


@pytest.fixture(scope="package")
def windows(browser: Browser, address: str) -> Iterator[BrowserContext]:
    """What all windows share, above all the cache: the scripts of the page are compiled once."""
    context = browser.new_context(base_url=address, viewport={"width": 1200, "height": 800})
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def page(chromium: str, windows: BrowserContext) -> Iterator[Page]:
    """A window, in which ``page.goto("/collections")`` opens a page of the served workspace.

    Without `chromium` the test is skipped before `address` fills and serves the workspace.

    Nothing may go wrong in it unseen: no error of a script, no dialog of one, no foreign request, no error in the
    console, such as one against the content policy.

    The same holds for further windows, which a test makes with ``page.context.new_page()``.
    """
    wrong: list[str] = []

    def on_dialog(dialog: Any) -> None:
        wrong.append(dialog.message)
        dialog.dismiss()

    def on_console(line: Any) -> None:
        # Tests ask for missing files, and stop the server of a window.
        if line.type == "error" and not line.text.startswith(("Failed to load resource", "WebSocket connection to")):
            wrong.append(line.text)

    handlers: dict[Any, Callable[[Any], None]] = {
        "weberror": lambda error: wrong.append(str(error.error)),
        "dialog": on_dialog,
        "console": on_console,
        "request": lambda request: None if _local(request.url) else wrong.append(request.url),
    }
    for event, handler in handlers.items():
        windows.on(event, handler)
    yield windows.new_page()
    for window in windows.pages:
        window.close()
    for event, handler in handlers.items():
        windows.remove_listener(event, handler)
    assert wrong == []


def _local(url: str) -> bool:
    return url.startswith(("http://127.0.0.", "ws://127.0.0.", "data:", "blob:"))


def upload(page: Page, *files: Path, button: str = "Choose files") -> None:
    """Choose files, as a visitor does."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name=button).click()
    chooser.value.set_files(list(files))


def complaint(page: Page, *values: str) -> Locator:
    """The error on the page that names these values; its wording is checked."""
    found = page.locator(".rg-failure").filter(visible=True)
    for value in values:
        found = found.filter(has_text=value)
    expect(found.first).to_be_visible()
    check_message(found.first.inner_text(), *values)
    return found


def check_accessibility(page: Page, without: str = "iframe") -> None:
    """No serious violation of WCAG in the light scheme, nor in the dark one, which differs in colours only."""
    page.wait_for_function("!document.querySelector('.q-loading-bar:not([aria-hidden=true])')")  # of an open request
    for scheme, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)
        # What fades in has another contrast.
        page.wait_for_function("document.getAnimations().every((one) => one.playState !== 'running')")
        asked = {"resultTypes": ["violations"], **options}
        violations = Axe().run(page, {"exclude": [[without]]}, asked).response["violations"]
        found = [(one["id"], one["nodes"][0]["html"]) for one in violations if one["impact"] in ("serious", "critical")]
        assert found == [], scheme


_BROKEN_WORDS = r"""() => {
  const word = /\d[\d.,:\/%-]*\d|[\p{L}\p{N}_][\p{L}\p{N}_.]*/gu, broken = [];
  const cells = [...document.querySelectorAll("td, th")].filter((cell) => cell.checkVisibility());
  for (const cell of cells) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const found of texts.currentNode.data.matchAll(word)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, found.index);
        range.setEnd(texts.currentNode, found.index + found[0].length);
        const lines = [...range.getClientRects()].filter((one) => one.width > 0).map((one) => Math.round(one.top));
        if (new Set(lines).size > 1) broken.push(found[0]);
      }
    }
  }
  return [cells.length, document.documentElement.scrollWidth > window.innerWidth, broken];
}"""


def check_words_are_whole(page: Page, *, least: int = 1) -> None:
    """No number or name in a cell of a table is broken in two lines, on a phone or wider, and no page is too wide.

    ``least``: number of cells that are there.
    """
    for width in (390, 800, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("document.getAnimations().every((one) => one.playState !== 'running')")
        seen = [frame.evaluate(_BROKEN_WORDS) for frame in page.frames]
        assert [(is_wide, broken) for _, is_wide, broken in seen] == [(False, [])] * len(seen), width
        assert sum(count for count, _, _ in seen) >= least


@pytest.fixture
def state(embedder: HashingEmbedder, workspace: Workspace, tmp_path: Path) -> Iterator[AppState]:  # noqa: F811
    """What the pages stand on, without a page: over an empty workspace, with a root ``papers``."""
    (tmp_path / "papers").mkdir()
    saved = saved_jobs(workspace)
    yield AppState(workspace, (tmp_path / "papers",), saved)
    saved.close()


def ended(job: SavedJob) -> SavedJob:
    """The job when it has ended."""
    wait_until(lambda: job.ended)
    return job


def wait_until(condition: Callable[[], object]) -> None:
    """Look again until the condition holds."""
    until = time.monotonic() + PATIENCE / 1000
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
