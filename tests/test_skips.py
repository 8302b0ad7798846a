"""A machine without a browser skips the tests of the page and says so; the variable of ``.ci/run`` makes them fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import skips

ROOT = Path(__file__).resolve().parents[1]
BROWSER_TEST = "tests/web/test_filters.py::test_a_filter_limits_the_search_and_stays_in_the_address"


def test_skipped_tests_are_counted_by_what_is_missing() -> None:
    reasons = [f"Skipped: {skips.CHROMIUM}", f"Skipped: {skips.CHROMIUM}", skips.TESSERACT, "only root may do this"]
    assert skips.summary(reasons) == (
        "skipped: 2 without Chromium (apt-get install chromium), 1 without tesseract (apt-get install tesseract-ocr), "
        "1 that do not apply to this system (pytest -rs lists them)"
    )


@pytest.fixture
def without_browser(tmp_path: Path) -> dict[str, str]:
    """The environment, with a search path that leads to Git only."""
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "REQUIRE_BROWSER")}
    return kept | {"PATH": str(tmp_path)}


def run(environment: dict[str, str]) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", BROWSER_TEST]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_browser_is_not_required_by_ci(without_browser: dict[str, str]) -> None:
    code, output = run({**without_browser, "CI": "true"})
    assert code == 0, output
    assert re.search(rf"^skipped: \d+ {re.escape(skips.CHROMIUM)}\n\d+ skipped in .*\n$", output, re.MULTILINE), output


def test_browser_is_required_by_its_variable(without_browser: dict[str, str]) -> None:
    code, output = run({**without_browser, "REQUIRE_BROWSER": "1"})
    assert code == 1, output
    assert "REQUIRE_BROWSER is 1, but the PATH has none of chromium" in output
