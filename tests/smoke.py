"""Mark the tests that ``smoke.txt`` lists with ``smoke``: quick ones of every part, for another version of Python.

A line of the list is the beginning of a test's id: a file, or a test of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FILE = Path(__file__).with_name("smoke.txt")
ENTRIES = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
FILES = {entry.partition("::")[0] for entry in ENTRIES}
unmatched = pytest.StashKey[list[str]]()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the other files in ``pytest -m smoke``, because importing them takes longer than these tests."""
    if config.option.markexpr != "smoke" or collection_path.suffix != ".py":
        return None
    return collection_path.relative_to(config.rootpath).as_posix() not in FILES or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests, and keep the lines that match none although their file is collected."""
    matched = set()
    for item in items:
        for entry in ENTRIES:
            if item.nodeid.startswith((f"{entry}::", f"{entry}[")) or item.nodeid == entry:
                item.add_marker(pytest.mark.smoke)
                matched.add(entry)
    files = {item.nodeid.partition("::")[0] for item in items}
    config.stash[unmatched] = [entry for entry in ENTRIES if entry not in matched and entry.partition("::")[0] in files]
