"""A query that is no text is refused before any technique sees it, by all of them in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.errors import QueryError

HALF = "green \ud83d tea"


def test_half_a_character_in_a_query_is_refused_alike_by_every_technique(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("tea")
        workspace.library.ingest_text("Steep green tea.", "green.txt", "tea")
        told = set()
        for name in workspace.registry.names():
            if workspace.registry.missing_model(name):
                continue
            for search in (workspace.technique(name).retrieve, lambda query, name=name: workspace.search(query, name)):
                with pytest.raises(QueryError) as raised:
                    search(HALF)
                told.add(f"{type(raised.value).__name__}: {raised.value}")
    assert told == {
        r"QueryError: the query has half a character at 6: 'green \ud83d tea'; send whole characters, in UTF-8"
    }
