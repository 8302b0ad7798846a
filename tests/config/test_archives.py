"""What an archive may be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.config.archives import RagArchiveConfig
from ragistry.errors import InvalidConfigError
from ragistry.techniques.routing.llm import NONE


@pytest.mark.parametrize("name", [NONE, f"  {NONE} "])
def test_no_archive_is_called_what_a_router_says_to_choose_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="how a router says that nothing fits; give the archive another name"):
        RagArchiveConfig(name=name, collection_name="docs", embedding_model="m")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "vector_stores.yaml").write_text(
        f"archives:\n- {{name: '{name}', collection_name: docs, embedding_model: m}}\n", encoding="utf-8"
    )
    with pytest.raises(InvalidConfigError, match=r"vector_stores.yaml:2: archives.0.name: .* nothing fits"):
        open_workspace(tmp_path)


def test_a_name_that_only_resembles_it_is_free() -> None:
    assert RagArchiveConfig(name="none of these", collection_name="docs", embedding_model="m").name == "none of these"
