"""documents.yaml is edited in place: comments stay, readers see the old file or the new one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragistry.config.collections import CollectionsFile
from ragistry.errors import CollectionAlreadyExistsError, ConfigError, InvalidCollectionNameError, InvalidConfigError

HAND_WRITTEN = """\
# our library
n_results: 7        # not too many
collections:
  - name: mba       # the oldest
    display_name: "MBA Textbooks"
    description: "MBA textbooks covering strategy, finance"
"""


@pytest.fixture
def file(tmp_path: Path) -> CollectionsFile:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text(HAND_WRITTEN, encoding="utf-8")
    return CollectionsFile(tmp_path)


def test_adding_keeps_what_its_owner_wrote(file: CollectionsFile) -> None:
    file.add("econ", "Macro: 'micro' & theory")
    text = file.path.read_text(encoding="utf-8")
    assert text.startswith(HAND_WRITTEN)
    assert [(entry.name, entry.description) for entry in file.entries()] == [
        ("mba", "MBA textbooks covering strategy, finance"),
        ("econ", "Macro: 'micro' & theory"),
    ]


def test_without_a_file_one_is_made_from_the_packaged_one(tmp_path: Path) -> None:
    file = CollectionsFile(tmp_path)
    assert file.entries() == []
    file.add("notes")
    assert [entry.name for entry in file.entries()] == ["notes"]
    assert "# embed_model: minilm" in file.path.read_text(encoding="utf-8")


def test_a_hand_edit_is_picked_up(file: CollectionsFile) -> None:
    assert [entry.name for entry in file.entries()] == ["mba"]
    file.path.write_text("collections: [{name: one}, {name: other}]\n", encoding="utf-8")
    assert [entry.name for entry in file.entries()] == ["one", "other"]


def test_a_name_that_is_taken_or_malformed_is_refused(file: CollectionsFile) -> None:
    before = file.path.read_bytes()
    with pytest.raises(CollectionAlreadyExistsError, match="'mba' exists"):
        file.add("mba")
    with pytest.raises(InvalidCollectionNameError, match=r"'\.\./etc' cannot name a collection; use 1 to 63"):
        file.add("../etc")
    assert file.path.read_bytes() == before


def test_a_broken_hand_edit_is_told_with_its_line(file: CollectionsFile) -> None:
    file.path.write_text("collections:\n  - {nam: mba}\n", encoding="utf-8")
    with pytest.raises(InvalidConfigError, match="documents.yaml:2: .*did you mean 'name'"):
        file.entries()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot write '.*documents.yaml': .*; make it writable"):
        CollectionsFile(tmp_path).add("notes")


def test_many_writers_lose_nothing(file: CollectionsFile) -> None:
    names = [f"c{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: CollectionsFile(file.path.parents[1]).add(name), names))
    assert sorted(entry.name for entry in file.entries()) == sorted(["mba", *names])
    assert list(file.path.parent.glob(".documents.yaml.?*[!k]")) == []
