"""A workspace of its own for each test: a real Chroma directory and the real model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(tmp_path) as opened:
        opened.library.create_collection("notes", "Notes about everything")
        yield opened
