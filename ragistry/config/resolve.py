"""Resolve each setting and where it comes from: argument > environment > file > default."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ragistry.config.files import FILES, read_file
from ragistry.config.folder import check_restored, folder_of
from ragistry.config.problems import Problems, dotted, explain
from ragistry.config.settings import CHROMA, CONFIG_FOLDER, PREFIX, SOURCES, Settings, is_there, text_of
from ragistry.config.yaml_file import YamlFile, fill_in
from ragistry.utils.urls import public_url
from ragistry.utils.wording import did_you_mean, shown

log = logging.getLogger(__name__)

OTHER_VARIABLES = ("workspace", "debug", "mcp_token", "data", "bench_cache")
"""Variables with the prefix that are not settings: those of commands, tests and benchmarks."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings, the place that set each, and the files read, by name."""

    settings: Settings
    origins: dict[str, str]
    files: dict[str, YamlFile]


class Found(NamedTuple):
    """A value and the place that sets it."""

    value: Any
    place: str


def resolve(
    root: Path,
    arguments: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    problems: Problems | None = None,
) -> Resolved:
    """Read the settings of a workspace from its files and the environment.

    Args:
        root: Folder of the workspace.
        arguments: Values that override all others; None is not a value.
        environ: The environment; by default that of the process.
        problems: Receives every error, by file and line; the invalid settings have their defaults then.

    Raises:
        InvalidConfigError: With every error, unless ``problems`` receives them.
        ConfigError: The restore of a backup to this folder has not ended.
    """
    check_restored(root)
    environ = os.environ if environ is None else environ
    files: dict[str, YamlFile] = {}
    if not (collects := problems is not None):
        problems = Problems()
    for name, model in FILES.items():
        with problems.gather():
            if is_there(path := root / CONFIG_FOLDER / name):
                files[name], _ = read_file(path, model, problems)
                if "store" in (data := files[name].data):
                    data["store"] = fill_in(data["store"], ["store"], partial(_look_up, files[name], environ, problems))
    found = {name: Found(value, "argument") for name, value in (arguments or {}).items() if value is not None}
    for name in SOURCES:
        _find(name, files, environ, found, problems)
    # A folder or a host of ChromaDB selects the store chroma, which must not contradict ``store:``.
    selecting = {name: found[name] for name in ("chroma_path", "chroma_host") if name in found}
    if len(selecting) == 2:
        folder, host = selecting.values()
        problems.lines.append(
            f"{host.place}: chroma_host: {_value_text('chroma_host', host.value)}, but {folder.place} says chroma_path "
            f"{folder.value!r}; a ChromaDB is a folder or a server, so remove one of the two"
        )
    if selecting:
        found.setdefault("store", Found(CHROMA, next(iter(selecting.values())).place))
    for name, (value, place) in selecting.items():
        if found["store"].value != CHROMA:
            problems.lines.append(
                f"{place}: {name}: {_value_text(name, value)} selects the store 'chroma', but {found['store'].place} "
                f"says {found['store'].value!r} (store); remove one of the two"
            )
    values = {name: value for name, (value, _) in found.items()}
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            name = str(item["loc"][0])
            problems.lines.append(f"{found[name].place}: {name}: {explain(item, Settings)}")
            values.pop(name, None)
        settings = Settings.model_validate(values)
    if not collects:
        problems.report()
    if not problems.lines:
        for line in unknown_variables(environ):
            log.warning("%s", line)
    return Resolved(settings, {name: found[name].place if name in found else "default" for name in SOURCES}, files)


def _look_up(
    file: YamlFile, environ: Mapping[str, str], problems: Problems, name: str, keys: Sequence[str | int]
) -> str:
    """Return an environment variable that the section of the store names."""
    if not (found := environ.get(name, "").strip()):
        problems.add(file, keys, f"{dotted(keys)}: the environment variable {name!r} is not set; set it")
    return found


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each variable that has the prefix of this program but no effect."""
    known = [*map(str.upper, OTHER_VARIABLES), *(name.upper() for name in SOURCES if SOURCES[name].variables)]
    names = [variable.removeprefix(PREFIX) for variable in sorted(environ) if variable.startswith(PREFIX)]
    return [f"environment {PREFIX}{name} has no effect: {_remedy(name, known)}" for name in names if name not in known]


def _remedy(name: str, known: list[str]) -> str:
    setting = name.lower()
    if setting in SOURCES:
        [(file, *keys)] = SOURCES[setting].keys
        return f"set {'.'.join(keys)} in {CONFIG_FOLDER}/{file}"
    return f"there is no {name!r}{did_you_mean(name, known) or '; `ragistry config` lists the settings'}"


def _find(
    name: str, files: Mapping[str, YamlFile], environ: Mapping[str, str], found: dict[str, Found], problems: Problems
) -> None:
    """Add the value of a setting and its place. Two places may set the same value, but not different ones."""
    places = list(_places(name, files, found))
    for file, keys, value in places[1:]:
        first, first_keys, other = places[0]
        if str(value) != str(other):
            problems.add(
                file, keys, f"{keys[-1]}: {_value_text(name, value)}, but {first.place(first_keys)} says "
                f"{_value_text(name, other)} ({name}); keep one of the two",
            )  # fmt: skip
    if name in found:
        return
    variable = next((one for one in SOURCES[name].variables if environ.get(one, "").strip()), None)
    if variable is not None:
        found[name] = Found(environ[variable], f"environment {variable}")
        if variable == "CHROMA_HOST" and (port := environ.get("CHROMA_PORT", "").strip()):
            problems.lines.append(
                f"environment CHROMA_PORT: {port!r} is part of the address; set CHROMA_HOST to http://HOST:PORT, and "
                "unset CHROMA_PORT"
            )
    elif places:
        file, keys, value = places[0]
        if not problems.names(keys):
            found[name] = Found(value, file.place(keys))


def _places(
    name: str, files: Mapping[str, YamlFile], found: Mapping[str, Found]
) -> Iterator[tuple[YamlFile, list[str], Any]]:
    """Yield the keys set in files. Keys of ``store:`` other than ``use`` count only if the store is chroma."""
    for file_name, *keys in SOURCES[name].keys:
        if (file := files.get(file_name)) is None:
            continue
        if keys[0] == "store" and keys[-1] != "use":
            chosen = found["store"].value if "store" in found else ""
            if not _value(file, ["store", "use"]) == chosen == CHROMA:
                continue
        if (value := _value(file, keys)) is not None:
            yield file, keys, value


def _value(file: YamlFile, keys: list[str]) -> Any:
    node: Any = file.data
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _value_text(name: str, value: Any) -> str:
    return shown(public_url(value) if name.endswith(("_host", "_url")) and isinstance(value, str) else value)


CHROMA_SETTINGS = ("host", "tenant", "database", "timeout")
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
    """Return the store of a workspace. Raises `ConfigError`."""
    settings = resolved.settings
    entry = StoreEntry(settings.store, places={"use": resolved.origins["store"]})
    file = resolved.files.get("vector_stores.yaml")
    if file is not None and _value(file, ["store", "use"]) == entry.use:
        section = file.data["store"]
        for key in section:  # in the order of the file, so that errors are in it too
            if key != "use":
                entry.config[key], entry.places[key] = section[key], file.place(["store", key])
    if entry.use != CHROMA:
        return entry
    config = entry.config
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
    return entry
