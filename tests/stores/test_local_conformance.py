"""`LocalStore` passes the suites that ship, also with settings that make a small store behave as a large one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragistry.stores.local import LocalStore
from ragistry.testing.stores import DocumentStoreConformance, LibraryStoreConformance, TextSearchConformance

SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "sketches": {"exact_below": 0}, "exclusive": {"exclusive": True}}


class TestLocalStore(DocumentStoreConformance, LibraryStoreConformance, TextSearchConformance):
    @pytest.fixture(params=SETTINGS)
    def store(self, request: pytest.FixtureRequest, quick_path: Path) -> Iterator[LocalStore]:
        store = LocalStore(quick_path / "local", **SETTINGS[request.param])
        yield store
        store.close()
