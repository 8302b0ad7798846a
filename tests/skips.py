"""Say in one line at the end of a run which tests were skipped, and how to include them."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

CHROMIUM = "without Chromium (apt-get install chromium)"
TESSERACT = "without tesseract (apt-get install tesseract-ocr)"
OPENVINO = "without OpenVINO (pip install '.[openvino]')"
PARTS = "without the models of tests/parts.txt (make parts)"
SLOW = "without RAGISTRY_FULL=1 (`make bench` runs slow tests)"
DATA = "without the corpora (set RAGISTRY_DATA to their folder)"
OTHERS = "that do not apply to this system (pytest -rs lists them)"
"""Reasons of skipped tests. The line counts reasons that begin with "without" one by one, and the others together."""


def summary(reasons: list[str]) -> str:
    """Count the skipped tests by reason."""
    found = (re.search(r"without .+ \(.+\)$", reason) for reason in reasons)
    counts = Counter(match.group() if match else OTHERS for match in found)
    return "skipped: " + ", ".join(f"{count} {reason}" for reason, count in counts.most_common())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that are marked with ``slow`` where not all is to run."""
    if not os.environ.get("RAGISTRY_FULL"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason=SLOW))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print the line."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple | list)]
    if reasons:
        terminalreporter.write_line(summary(reasons))
