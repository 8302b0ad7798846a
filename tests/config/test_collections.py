"""documents.yaml is edited in place: comments stay, readers see the old file or the new one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ragistry.config import replacing
from ragistry.config.collections import CollectionsFile
from ragistry.config.resolve import resolve
from ragistry.errors import (
    CollectionAlreadyExistsError,
    ConfigError,
    InvalidCollectionNameError,
    InvalidConfigError,
)
from tests.messages import refused

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


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where the folder should be", encoding="utf-8")
    with refused(ConfigError):
        CollectionsFile(tmp_path).add("notes")


def test_two_processes_lose_nothing_of_each_other(file: CollectionsFile) -> None:
    script = """
import sys
from pathlib import Path
from ragistry.config.collections import CollectionsFile
from ragistry.config.resolve import resolve
file, mine = CollectionsFile(Path(sys.argv[1])), sys.argv[2]
for number in range(8):
    file.add(f"{mine}{number}", f"Number {number}")
    file.update(f"{mine}{number}", description=f"Described {number}")
    file.begin_rename(f"{mine}{number}", f"{mine}-{number}")
    file.end_rename(f"{mine}-{number}")
file.remove(f"{mine}-0", lambda: None)
"""
    root = file.path.parents[1]
    writers = [subprocess.Popen([sys.executable, "-c", script, str(root), name]) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    expected = {f"{name}-{number}": f"Described {number}" for name in "ab" for number in range(1, 8)}
    assert {entry.name: entry.description for entry in file.entries()} == expected | {
        "mba": "MBA textbooks covering strategy, finance"
    }
    assert file.path.read_text(encoding="utf-8").startswith(HAND_WRITTEN)


def test_what_an_editor_saves_during_an_edit_is_kept(file: CollectionsFile) -> None:
    file.add("econ")
    saved = iter([HAND_WRITTEN + "  - name: econ   # saved by hand\n  - name: by_hand\n"])

    def save() -> None:
        for text in saved:
            file.path.write_text(text, encoding="utf-8")

    file.remove("mba", before=save)
    assert [entry.name for entry in file.entries()] == ["econ", "by_hand"]
    assert "# saved by hand" in file.path.read_text(encoding="utf-8")


def out_of_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def not_writable(*_: object) -> None:
    raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def crash(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "fault", "error", "said"),
    [
        ("os.fsync", out_of_space, ConfigError, "No space left on device; free some space on the disk$"),
        ("os.fsync", not_writable, ConfigError, "Permission denied; make it writable$"),
        ("pathlib.Path.replace", crash, KeyboardInterrupt, "^$"),
    ],
)
def test_an_edit_that_fails_or_is_killed_leaves_the_old_file(
    file: CollectionsFile, monkeypatch: pytest.MonkeyPatch, place: str, fault: Any, error: Any, said: str
) -> None:
    monkeypatch.setattr(place, fault)
    with pytest.raises(error, match=said):
        file.add("econ")
    assert file.path.read_text(encoding="utf-8") == HAND_WRITTEN
    assert {path.name for path in file.path.parent.iterdir()} <= {
        "documents.yaml", ".documents.yaml.lock", ".documents.yaml.saved", ".documents.yaml.new",
    }  # fmt: skip


def test_what_fails_before_the_write_changes_nothing(file: CollectionsFile) -> None:
    with pytest.raises(KeyboardInterrupt):
        file.remove("mba", before=crash)
    for wrong, refusal in (("mba", CollectionAlreadyExistsError), ("../etc", InvalidCollectionNameError)):
        with refused(refusal):
            file.add(wrong)
    assert file.path.read_text(encoding="utf-8") == HAND_WRITTEN


def test_a_link_to_the_file_stays_a_link_and_the_mode_stays(file: CollectionsFile, tmp_path: Path) -> None:
    real = tmp_path / "kept-elsewhere.yaml"
    file.path.rename(real)
    real.chmod(0o640)
    file.path.symlink_to(real)
    file.add("econ")
    assert file.path.is_symlink()
    assert (real.stat().st_mode & 0o777, "econ" in real.read_text(encoding="utf-8")) == (0o640, True)


def test_a_former_name_is_not_free_while_it_is_needed(file: CollectionsFile) -> None:
    file.begin_rename("mba", "business")
    with refused(CollectionAlreadyExistsError):
        file.add("mba")
    file.end_rename("business")
    assert file.add("mba").name == "mba"


def test_what_a_killed_edit_left_is_replaced(file: CollectionsFile) -> None:
    left = file.path.with_name(".documents.yaml.new")
    left.write_text("collections: [{name: half", encoding="utf-8")
    file.add("econ")
    assert not left.exists()
    assert [entry.name for entry in file.entries()] == ["mba", "econ"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colections:\n  - name: mba\n", "documents.yaml:1: colections: unknown setting .* did you mean 'collections'"),
        ("collections: [{name: mba}]\nn_results: 0\n", "documents.yaml:2: n_results: .*, got 0"),
        ("collections:\n  - {nam: mba}\n", "documents.yaml:2: collections.0.nam: unknown setting"),
        ("collections:\n  - name: one\n  - name: one\n", "documents.yaml:3: collections.1.name: collection 'one' is"),
        ("n_results: 5\ncollections: 7\n", "documents.yaml:2: collections: "),
    ],
)
def test_a_hand_edit_is_refused_for_whatever_the_command_line_refuses(
    file: CollectionsFile, text: str, said: str
) -> None:
    file.path.write_text(text, encoding="utf-8")
    root = file.path.parents[1]
    for use in (file.entries, lambda: resolve(root, environ={}), lambda: file.add("econ")):
        with pytest.raises(InvalidConfigError, match=said):
            use()
    assert file.path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("field", ["description", "display_name"])
def test_half_a_character_is_refused_by_the_name_of_its_field(file: CollectionsFile, field: str) -> None:
    for edit in (lambda: file.add("econ", **{field: "\ud800"}), lambda: file.update("mba", **{field: "\ud800"})):
        with pytest.raises(ConfigError, match=rf"its {field}, '\\ud800', has half a character"):
            edit()
    assert file.path.read_text(encoding="utf-8") == HAND_WRITTEN


@pytest.mark.parametrize("style", ["in place", "by a new file"])
def test_a_save_of_an_editor_during_an_edit_is_kept(
    file: CollectionsFile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, style: str
) -> None:
    original, saves = replacing._replaced, []

    def with_editor(path: Path, new: Path, expected: bytes | None) -> bool:
        if not saves:
            saves.append(1)
            text = path.read_text(encoding="utf-8") + "# a note of the editor\n"
            if style == "in place":
                path.write_text(text, encoding="utf-8")
            else:
                path.with_name("editor.new").write_text(text, encoding="utf-8")
                path.with_name("editor.new").replace(path)
        return original(path, new, expected)

    monkeypatch.setattr(replacing, "_replaced", with_editor)
    file.add("econ", "Economics")
    text = file.path.read_text(encoding="utf-8")
    assert "# a note of the editor" in text
    assert "name: econ" in text
    assert "both changes are kept" in caplog.text


def test_a_half_saved_file_is_read_again(file: CollectionsFile) -> None:
    before = [entry.name for entry in file.entries()]
    whole = file.path.read_bytes()
    file.path.write_bytes(b"collections: [{name: ")
    timer = threading.Timer(0.2, file.path.write_bytes, [whole])
    timer.start()
    assert [entry.name for entry in file.entries()] == before
    timer.join()
