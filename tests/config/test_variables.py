"""``${NAME}`` in the section of the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.config.resolve import resolve, store_entry
from ragistry.errors import InvalidConfigError


def write(root: Path, store: str) -> Path:
    (root / "config").mkdir()
    (root / "config" / "vector_stores.yaml").write_text(f"# mine\nstore:\n{store}", encoding="utf-8")
    return root


def test_a_variable_takes_its_place_in_texts_of_any_store(tmp_path: Path) -> None:
    write(tmp_path, '  use: "own:Store"\n  url: "db://me:${PW}@h/${ NAME}"\n  more: {a: ["${PW}", 1]}\n')
    entry = store_entry(tmp_path, resolve(tmp_path, environ={"PW": "s3cret\n", " NAME": "x"}))
    assert entry.config == {"url": "db://me:s3cret@h/x", "more": {"a": ["s3cret", 1]}}


def test_a_variable_takes_its_place_in_a_setting(tmp_path: Path) -> None:
    write(tmp_path, '  use: chroma\n  host: "http://${PLACE}"\n')
    assert resolve(tmp_path, environ={"PLACE": "box"}).settings.chroma_host == "http://box"


def test_every_variable_that_is_not_set_is_told_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, '  use: "own:Store"\n  url: "${ONE}"\n  keys: ["${TWO}"]\n')
    with pytest.raises(InvalidConfigError) as caught:
        resolve(tmp_path, environ={"TWO": " "})
    told = [line.partition("vector_stores.yaml:")[2] for line in str(caught.value).splitlines()]
    assert list(filter(None, told)) == [
        "4: store.url: the environment variable 'ONE' is not set; set it",
        "5: store.keys.0: the environment variable 'TWO' is not set; set it",
    ]
