"""A machine without a browser skips the tests of the page and says so; the variable of ``.ci/run`` makes them fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import skips
from tests.web import conftest as web

ROOT = Path(__file__).resolve().parents[1]
TESTS = f"""
import pytest

@pytest.mark.slow
def test_slow(): ...

def test_of_the_page():
    pytest.skip({skips.CHROMIUM!r})
"""


def test_skipped_tests_are_counted_by_what_is_missing() -> None:
    reasons = [f"Skipped: {skips.CHROMIUM}", f"Skipped: {skips.CHROMIUM}", skips.TESSERACT, "only root may do this"]
    assert skips.summary(reasons) == (
        "skipped: 2 without Chromium (apt-get install chromium), 1 without tesseract (apt-get install tesseract-ocr), "
        "1 that do not apply to this system (pytest -rs lists them)"
    )


def test_last_line_of_a_run_counts_what_was_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_skipped.py").write_text(TESTS)
    monkeypatch.delenv("RAGISTRY_FULL", raising=False)
    command = [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:cacheprovider"]
    command += ["-c", str(ROOT / "pyproject.toml"), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    counts = f"skipped: 1 {re.escape(skips.SLOW)}, 1 {re.escape(skips.CHROMIUM)}"
    assert re.search(rf"^{counts}\n2 skipped in .*\n$", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize(
    ("required", "outcome", "said"),
    [(True, pytest.fail.Exception, "REQUIRE_BROWSER is 1.*chromium"), (False, pytest.skip.Exception, "apt-get")],
)
def test_browser_is_required_by_its_variable_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, required: bool, outcome: type[BaseException], said: str
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(web, "REQUIRED", required)
    with pytest.raises(outcome, match=said):
        web.find_chromium()
