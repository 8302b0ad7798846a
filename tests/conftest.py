"""What every test may use: the fixtures of the project, and real data where it lies beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RAGISTRY_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The project's own documents."""
    return ROOT / "fixtures"


@pytest.fixture(scope="session")
def data() -> Path:
    """Real corpora; a test that needs them is skipped where they are absent."""
    if not DATA.is_dir():
        pytest.skip(f"no real data at {DATA}; set RAGISTRY_DATA")
    return DATA


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the person who runs the tests do not decide how they end."""
    for name in list(os.environ):
        if name.startswith(("RAGISTRY_", "CHROMA_", "OLLAMA_", "DOCPROC_", "RAG_")):
            monkeypatch.delenv(name)
