"""What the contract says of a path that is no folder, and of a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.errors import ChromaDBConnectionError, ConfigError, InvalidLimitError
from ragistry.library.contract import create_collection, list_collections, search_chunks


def test_a_file_in_the_place_of_the_folder_cannot_be_listed(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ChromaDBConnectionError, match="cannot be opened: Not a directory"):
        list_collections(path=tmp_path / "file")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place where no folder can be made, not even by root")
def test_a_place_where_no_folder_can_be_made_is_named():
    with pytest.raises(ChromaDBConnectionError, match="'/proc/x' cannot be opened: No such file or directory"):
        create_collection("docs", {}, path="/proc/x")


def test_metadata_with_half_a_character_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be written as JSON .*surrogates not allowed"):
        create_collection("docs", {"repository_url": "\ud800"}, path=tmp_path)
    assert list_collections(path=tmp_path) == []


def test_no_folder_holds_no_collections(tmp_path):
    assert list_collections(path=tmp_path / "none") == []


@pytest.mark.parametrize("limit", [0, 101, True])
def test_a_wrong_limit_is_named_as_its_caller_knows_it(tmp_path, limit):
    collection = create_collection("docs", {}, path=tmp_path)
    with pytest.raises(InvalidLimitError, match=f"^limit must be a whole number from 1 to 100, got {limit!r}$"):
        search_chunks(collection, "setup", limit)
