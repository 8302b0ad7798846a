"""A real server over a real workspace, and a real browser in front of it.

Screenshots go to the folder that ``RAGISTRY_SCREENSHOTS`` names, by default one in the temporary folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from ragistry import open_workspace

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 20_000
"""Milliseconds for what must come: a machine that runs tests is busy."""
expect.set_options(timeout=PATIENCE)
SHOTS = Path(os.environ.get("RAGISTRY_SCREENSHOTS", Path(tempfile.gettempdir()) / "ragistry-screenshots"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium; where there is none the test is skipped, in CI it fails."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs Chromium: .ci/run installs it")
        pytest.skip(f"no browser here (tried {', '.join(BROWSERS)})")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield opened
        opened.close()


@contextmanager
def served(root: Path, *words: str) -> Iterator[str]:
    """``ragistry ui`` over a workspace, on a free port; gives the address that it prints."""
    command = [sys.executable, "-m", "ragistry", "-w", str(root), "ui", "--port", "0", "--no-browser", *words]
    with (
        (root / "ui.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=root) as server,
    ):
        try:
            line = server.stdout.readline() if server.stdout else ""
            assert "http://" in line, (root / "ui.log").read_text()
            yield line.split()[3]
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
    assert "Traceback" not in (root / "ui.log").read_text(), (root / "ui.log").read_text()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Path:
    """A workspace with two collections, taken in once; tests that change something copy it."""
    root = tmp_path_factory.mktemp("library")
    with open_workspace(root) as workspace:
        for name, about in (("handbook", "Operations handbook"), ("garden", "Gardening: soil, pests, watering")):
            workspace.library.create_collection(name, about, name.capitalize())
            workspace.library.ingest_folder(fixtures / name, name)
    return root


@pytest.fixture(scope="module")
def root(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the library that the tests of a module may change."""
    return Path(shutil.copytree(library, tmp_path_factory.mktemp("served") / "workspace"))


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    """Where the copy is served."""
    with served(root, "--root", str(root.parent)) as found:
        yield found.rstrip("/")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window in which nothing may go wrong unseen: no error of a script, no dialog of one, no foreign request."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    made = context.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("dialog", lambda dialog: wrong.append(dialog.message))
    made.on("request", lambda request: None if _local(request.url) else wrong.append(request.url))
    made.set_default_timeout(PATIENCE)
    yield made
    context.close()
    assert wrong == []


def _local(url: str) -> bool:
    return url.startswith(("http://127.0.0.", "ws://127.0.0.", "data:", "blob:"))


@pytest.fixture
def shoot(browser: Browser) -> Callable[[str, str], None]:
    """Save a page in light and dark, wide and narrow."""

    def save(address: str, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        window = browser.new_page()
        window.goto(address)
        window.wait_for_selector(".rg-main")
        window.wait_for_timeout(500)
        for kind, width in (("wide", 1200), ("narrow", 390)):
            window.set_viewport_size({"width": width, "height": 800})
            for scheme in ("light", "dark"):
                window.emulate_media(color_scheme=scheme)
                window.wait_for_timeout(200)
                window.screenshot(path=SHOTS / f"{name}-{scheme}-{kind}.png")
        window.close()

    return save
