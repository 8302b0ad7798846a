"""Words are found however they are written."""

from __future__ import annotations

from pathlib import Path

from benchmarks.spellings import exact_ranks, ranks


def test_every_spelling_is_found_first(tmp_path: Path) -> None:
    assert [row for row in ranks(tmp_path) if row[-1] != 1] == []


def test_the_spelling_of_the_query_ranks_first(tmp_path: Path) -> None:
    assert [row for row in exact_ranks(tmp_path) if row[-1] != 1] == []
