"""The list of quick tests names tests that exist, of every folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.smoke import ENTRIES, unmatched

TESTS = Path(__file__).parent


def test_every_line_names_a_test(request: pytest.FixtureRequest) -> None:
    assert [entry for entry in ENTRIES if not (TESTS.parent / entry.partition("::")[0]).is_file()] == []
    if not any("::" in argument for argument in request.config.args):
        assert request.config.stash[unmatched] == [], "tests/smoke.txt names tests that do not exist"


def test_every_folder_has_quick_tests() -> None:
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    counts = Counter(entry.split("/")[1] for entry in ENTRIES if entry.count("/") > 1)
    assert {folder for folder in folders if not counts[folder]} == set()
