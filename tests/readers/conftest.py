"""Fixtures of the readers' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import DATA


@pytest.fixture
def shared_office() -> Path:
    """The folder of office files of other projects, which is not part of this one."""
    folder = DATA / "office"
    if not folder.is_dir():
        pytest.skip("the corpora are not there")
    return folder
