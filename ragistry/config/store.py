"""The store in the settings: its name, its configuration, and where each value is set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragistry.config.folder import folder_of
from ragistry.config.keys import text_of
from ragistry.config.resolve import Resolved
from ragistry.config.settings import CHROMA

CHROMA_SETTINGS = ("host", "port", "ssl", "tenant", "database", "timeout")
CHROMA_FOLDERS = ("path", "persist_directory")


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """``store: {use: …}`` with the values from other settings.

    ``places``: where ``use`` and each key of ``config`` is set, for messages.
    """

    use: str
    config: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


def store_entry(root: Path, resolved: Resolved) -> StoreEntry:
    """The entry from the settings of a workspace in ``root``. Raises `ConfigError`."""
    settings = resolved.settings
    entry = StoreEntry(settings.store, places={"use": resolved.origins["store"]})
    file = resolved.files.get("vector_stores.yaml")
    section = (file.data.get("store") or {}) if file is not None else {}
    if file is not None and section.get("use") == entry.use:
        for key in section.keys() - {"use"}:
            entry.config[key], entry.places[key] = section[key], file.place(["store", key])
    if entry.use == CHROMA:
        _add_chroma(root, resolved, entry)
    return entry


def _add_chroma(root: Path, resolved: Resolved, entry: StoreEntry) -> None:
    settings, config = resolved.settings, entry.config
    for key in (*CHROMA_SETTINGS, *CHROMA_FOLDERS):
        config.pop(key, None)
    for key in CHROMA_SETTINGS:
        origin = resolved.origins[f"chroma_{key}"]
        if origin != "default":
            config[key], entry.places[key] = getattr(settings, f"chroma_{key}"), origin
    if settings.chroma_host is None:
        path = folder_of(root, settings.chroma_path or f"{settings.data_dir}/chroma")
        config["path"], entry.places["path"] = str(path), resolved.origins["chroma_path"]
    if (api_key := text_of(settings.chroma_api_key)) is not None:
        config["headers"] = {"x-chroma-token": api_key} | dict(config.get("headers") or {})
