"""What a `LocalStore` cannot be opened with is refused before a file is made."""

from __future__ import annotations

import math
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import ConfigError
from ragistry.stores.local import LocalStore
from ragistry.stores.options import MAX_PATH
from ragistry.testing.stores.chunks import EAST, chunk


@pytest.mark.parametrize("options", [
    {"memory": -1}, {"memory": "x"}, {"language": None}, {"language": 3}, {"language": "klingon"},
    {"lock_timeout": "x"}, {"lock_timeout": -1}, {"lock_timeout": math.nan}, {"exact_below": -1}, {"graph_above": 0.5},
    {"vector_folder": "a\0b"},
], ids=repr)  # fmt: skip
def test_an_odd_setting_is_refused_by_its_name(tmp_path: Path, options: dict[str, Any]) -> None:
    [(name, value)] = options.items()
    with pytest.raises(ConfigError, match=name if name != "vector_folder" else "folder") as caught:
        LocalStore(tmp_path / "s", **options)
    assert repr(value) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["x" * 256, "a\0b", "/".join(["x" * 150] * 4), "caf\udce9", "\ud800"],
    ids=["long name", "nul", "long path", "no UTF-8", "surrogate"],
)  # fmt: skip
def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"folder.*; (choose|give|rename)") as caught:
        LocalStore(f"{tmp_path}/{name}")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["", None, 3, b"bytes"], ids=repr)
def test_what_is_no_path_is_refused(folder: Any) -> None:
    with pytest.raises(ConfigError, match="is not the path of a folder"):
        LocalStore(folder)


@pytest.mark.parametrize("options", [{}, {"exclusive": True, "graph_above": 0}], ids=["exact", "graph"])
def test_the_longest_path_works(tmp_path: Path, options: dict[str, Any]) -> None:
    folder = str(tmp_path)
    while (left := MAX_PATH - len(os.fsencode(folder)) - 1) > 0:
        folder += "/" + "x" * min(left, 200 if left != 201 else 100)
    for _ in range(2):
        with closing(LocalStore(folder, **options)) as store:
            store.add_documents([chunk("text")])
            assert len(store.search(EAST)) == len(store.search_text("text")) == 1
            assert store.verify() == []
