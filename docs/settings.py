"""Tables of every setting: of a workspace, of its files, of archives."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from docs.markdown import code, table
from ragistry.config.archives import ArchiveSettings, RagArchiveConfig
from ragistry.config.files import CollectionEntry, DocumentsFile
from ragistry.config.settings import SOURCES, ExtractionLimits, Settings
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
        ["setting", "default", "meaning", "also set by"],
        (
            (code(name), _default(field), field.description or name, "; ".join(_others(name)))
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
    """The keys of a file, or of one of its mappings, but those of documents.yaml that are settings."""
    settings = Settings.model_fields if model == "DocumentsFile" else {}
    fields = {name: field for name, field in MODELS[model].model_fields.items() if name not in settings}
    return table(["key", "default", "meaning"], ((code(n), _default(f), f.description or n) for n, f in fields.items()))


def archive_settings_table() -> str:
    """What the environment decides of archives."""
    return table(
        ["variable", "default", "meaning"],
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
