"""Ragistry: name a retrieval technique in YAML, ingest once, ask, and see which is better on your documents.

Public names are loaded on first use, so that importing the package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragistry.client.workspace import RemoteWorkspace as RemoteWorkspace
    from ragistry.client.workspace import connect as connect
    from ragistry.techniques.registry import TechniqueRegistry as TechniqueRegistry
    from ragistry.types import Chunk as Chunk
    from ragistry.types import Document as Document
    from ragistry.types import RetrievalResult as RetrievalResult
    from ragistry.workspace import Workspace as Workspace
    from ragistry.workspace import open_workspace as open_workspace

__version__ = "0.2.0"

_HOMES = {
    "Chunk": "ragistry.types",
    "Document": "ragistry.types",
    "RemoteWorkspace": "ragistry.client.workspace",
    "RetrievalResult": "ragistry.types",
    "TechniqueRegistry": "ragistry.techniques.registry",
    "Workspace": "ragistry.workspace",
    "connect": "ragistry.client.workspace",
    "open_workspace": "ragistry.workspace",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        from ragistry.utils.removed import no_attribute

        raise no_attribute(__name__, name)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
