"""Tables of every setting: of a workspace, of its files, of archives."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from docs.markdown import code, table
from ragistry.config.archive_settings import ArchiveSettings
from ragistry.config.archives import RagArchiveConfig
from ragistry.config.files import CollectionEntry, DocumentsFile, ExtractionLimits
from ragistry.config.settings import SOURCES, Settings
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore

MODELS: dict[str, type[BaseModel]] = {
    "RagArchiveConfig": RagArchiveConfig,
    "ChromaStore": ChromaStore.Config,
    "CollectionEntry": CollectionEntry,
    "DocumentsFile": DocumentsFile,
    "ExtractionLimits": ExtractionLimits,
    "LocalStore": LocalStore.Config,
}


def settings_table() -> str:
    """Each setting with what sets it besides the variable that every setting has."""
    return table(
        ["setting", "default", "what it is", "besides its variable"],
        (
            (code(name), _default(field), _description(name, field), "; ".join(_others(name)))
            for name, field in Settings.model_fields.items()
        ),
    )


def without_variable() -> list[str]:
    """The settings that no variable of their own sets."""
    return [name for name, source in SOURCES.items() if f"RAGISTRY_{name.upper()}" not in source.variables]


def _others(name: str) -> list[str]:
    source = SOURCES[name]
    others = [variable for variable in source.variables if variable != f"RAGISTRY_{name.upper()}"]
    return [*map(code, others), *(f"`{'.'.join(keys)}` in {file}" for file, *keys in source.keys)]


def file_keys_table(model: str) -> str:
    """What may stand in a file, or in one of its mappings."""
    return table(
        ["key", "default", "what it is"],
        ((code(n), _default(f), _description(n, f)) for n, f in MODELS[model].model_fields.items()),
    )


def archive_settings_table() -> str:
    """What the environment decides of archives."""
    return table(
        ["variable", "default", "what it is"],
        (
            (code(field.alias), _default(field), field.description or name.replace("_", " "))
            for name, field in ArchiveSettings.model_fields.items()
        ),
    )


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    return "" if value is None or value == "" else code(str(value).lower() if isinstance(value, bool) else value)


WORDS = {
    "chroma_api_key": "sent to the Chroma server as `x-chroma-token`",
    "chroma_database": "database of the Chroma server",
    "chroma_port": "port of the server",
    "chroma_ssl": "whether to use HTTPS",
    "chroma_tenant": "tenant of the Chroma server",
    "chroma_timeout": "seconds for one call to the server",
    "chunk_overlap": "characters that adjacent chunks share at most",
    "chunk_size": "characters of a chunk at most; auto: what the embedder takes in",
    "collection": "name of the Chroma collection that holds the library",
    "collections": "the collections, in the order in which they are listed",
    "description": "what is in it: people, routers and models choose by this",
    "display_name": "the name to show",
    "limits": "what one file may cost before it is given up",
    "n_results": "default number of results",
    "name": "1 to 63 letters, digits, `.`, `_` and `-`",
    "pdf_engine": "pypdfium2 or pypdf",
}
"""Of what has no description of its own in the code."""


def _description(name: str, field: Any) -> str:
    return field.description or WORDS[name]
