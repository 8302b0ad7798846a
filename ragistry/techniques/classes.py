"""The classes of techniques: find, check and describe them, and select the arguments of their constructors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ragistry import plugins
from ragistry.config.problems import parse_config
from ragistry.config.settings import CONFIG_FOLDER
from ragistry.errors import ConfigError
from ragistry.models.adapt import ADAPTERS
from ragistry.plugins import BrokenPluginError, Offer
from ragistry.utils.wording import listed

GROUP = "ragistry.techniques"
RESOURCES = (
    "name", "store", "embedder", "generator", "reranker", "base", "bases", "library", "targets", "registry", "folder",
)  # fmt: skip
"""The parameters that a constructor may have. ``folder`` is a path for data derived from the store. It is created on
the first write, and is left out if the store has no folder."""
MODELS = ("generator", "reranker")
"""The resources that an entry or a pipeline step may select by name from config/models.yaml."""
SETTING = {kind: f"add one to config/models.yaml under '{kind}s'" for kind in MODELS}
"""How to configure a resource that a workspace may lack."""
_MISSING = object()
_AUTO = "auto: hybrid if the store searches words, else naive"
Complaint = tuple[tuple[str, ...], str]
"""The keys of a value in an entry, and what is wrong with the value."""


class Reserved(BaseModel):
    """The keys of an entry that the registry reads; the others are settings of the technique."""

    model_config = ConfigDict(extra="allow", strict=True)

    use: str = Field(default="", description="the name of a technique or module:Class")
    base: str = Field(default="", description=f"the technique that this one builds on; {_AUTO}")
    bases: list[str] = Field(default=[], description="the techniques that this one builds on")
    generator: str = Field(default="", description="a name under generators in models.yaml")
    reranker: str = Field(default="", description="a name under rerankers in models.yaml")


class Wanted(NamedTuple):
    """A resource that a part of an entry needs, such as a node of a pipeline.

    Attributes:
        path: Keys of the part below the entry.
        resource: Name of the constructor's parameter.
        name: The generator or reranker that the part names.
    """

    path: tuple[str, ...]
    resource: str
    name: str | None = None


def offers() -> dict[str, Offer]:
    """Find the techniques that installed packages offer, by name."""
    return plugins.offers(GROUP)


def find_class(use: str) -> type[Any]:
    """Return the class that ``use`` names. Raises `ConfigError`, or `BrokenPluginError` for an installed plugin."""
    return plugins.find_class(use, GROUP, "technique")


def broken_plugins() -> dict[str, str]:
    """Return the offered techniques that cannot be loaded, with the reason."""
    broken = {}
    for name in offers():
        try:
            find_class(name)
        except BrokenPluginError as error:
            broken[name] = str(error)
    return broken


def modules_folder(path: Path) -> Path | None:
    """Return the folder whose Python files the entries of a techniques.yaml may use; None outside a workspace."""
    folder = path.resolve().parent
    return folder.parent if folder.name == CONFIG_FOLDER else None


def takes_everything(cls: type[Any]) -> bool:
    """Return whether the constructor takes ``**resources``, and so gets all of them."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(cls).parameters.values())


def wanted_resources(cls: type[Any], first: int = 1) -> dict[str, bool]:
    """Return the constructor's parameters by name, and whether each is required.

    Args:
        cls: The class.
        first: Index of the first parameter to return; a technique's configuration comes before it.
    """
    if cls.__init__ is object.__init__:
        return {}
    parameters = list(inspect.signature(cls).parameters.values())[first:]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name: p.default is p.empty for p in named}


def resources_for(
    user: str,
    wanted: Mapping[str, bool],
    own: Mapping[str, Any],
    resources: Mapping[str, Any],
    models: Mapping[str, str],
) -> dict[str, Any]:
    """Select the arguments of a technique or of a node of a pipeline by parameter name.

    Args:
        user: Name of the technique or node in messages.
        wanted: The parameters, as `wanted_resources` returns them.
        own: Its own resources, such as its base.
        resources: The shared resources.
        models: The generator and the reranker that its entry names, instead of the default ones.

    Raises:
        ConfigError: A required resource is missing.
    """
    given = {}
    for name, required in wanted.items():
        named = resources.get(f"{name}s", {}) if name in MODELS else {}
        if name in own:
            given[name] = own[name]
        elif name in models:
            if models[name] not in named:
                raise ConfigError(
                    f"{user}: no {name} {models[name]!r}; models.yaml has {listed(named)}; {SETTING[name]}"
                )
            given[name] = named[models[name]]
        elif (shared := resources.get(name, _MISSING)) is not _MISSING:
            given[name] = shared
        elif required and name in MODELS:
            raise ConfigError(missing_model(user, name, named))
        elif required:
            raise ConfigError(f"{user} needs {name!r}; open a workspace, or pass resources={{{name!r}: …}}")
    return {name: ADAPTERS[name](value) if name in ADAPTERS else value for name, value in given.items()}


def missing_model(user: str, kind: str, named: Mapping[str, Any]) -> str:
    """Say that a technique or a node of a pipeline lacks a generator or reranker. ``named``: the configured ones."""
    if named:
        return f"{user} needs a {kind}; choose one with `{kind}: NAME` from {listed(named)}"
    return f"{user} needs a {kind}, and none is configured; {SETTING[kind]}"


def complaints(cls: type[Any]) -> list[str]:
    """List the reasons why a class is not a technique; empty if it is one."""
    return [*_constructor(cls), *retrieve_complaints(cls)]


def _constructor(cls: type[Any]) -> list[str]:
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except ValueError:
        return [f"{cls.__name__} has a constructor that cannot be inspected; write __init__(self, config)"]
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        return [f"{cls.__name__}.__init__ must take the configuration first: __init__(self, config)"]
    if (first := parameters[0].name) in RESOURCES:
        return [f"{cls.__name__}.__init__ takes {first!r} first; write __init__(self, config, *, {first})"]
    return [
        f"{cls.__name__}.__init__ needs {name!r}, which is not a resource; the resources are {', '.join(RESOURCES)}"
        for name, required in wanted_resources(cls).items()
        if required and name not in RESOURCES
    ]


def retrieve_complaints(technique: Any) -> list[str]:
    """List what is wrong with the ``retrieve`` of a class or an object."""
    cls = technique if isinstance(technique, type) else type(technique)
    retrieve = getattr(technique, "retrieve", None)
    if not callable(retrieve):
        return [f"{cls.__name__} has no method retrieve(self, query, *, top_k=None, where=None)"]
    parameters = inspect.signature(retrieve).parameters
    missing = [name for name in ("top_k", "where") if name not in parameters]
    if not missing or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return []
    return [
        f"{cls.__name__}.retrieve does not take {' and '.join(missing)}; "
        "write retrieve(self, query, *, top_k=None, where=None) or retrieve(self, query, **options)"
    ]


def config_model(cls: type[Any]) -> type[BaseModel] | None:
    """Return the pydantic model of a technique's own configuration, if it has one."""
    model = getattr(cls, "Config", None)
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def configuration_of(cls: type[Any], config: Mapping[str, Any]) -> BaseModel | dict[str, Any]:
    """Return the configuration as the constructor takes it: as ``Config`` with its defaults, else as a dict.

    Raises `InvalidConfigError`.
    """
    model = config_model(cls)
    return dict(config) if model is None else parse_config(model, config, cls.__name__)


def config_schema(cls: type[Any]) -> dict[str, Any] | None:
    """Return the JSON Schema of a technique's own configuration, if it has a model."""
    model = config_model(cls)
    return None if model is None else model.model_json_schema()


def first_sentence(cls: type[Any]) -> str:
    """Return the first sentence of a class's docstring as plain text."""
    paragraph = " ".join(re.split(r"\n\s*\n", (cls.__doc__ or "").strip())[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0].rstrip(":").replace("`", "")


def techniques_schema() -> dict[str, Any]:
    """Make the JSON Schema of techniques.yaml. Broken plugins are left out."""
    definitions: dict[str, Any] = {}
    branches = []
    for name in offers():
        try:
            cls = find_class(name)
        except ConfigError:
            continue
        schema, wanted = config_schema(cls) or {}, wanted_resources(cls)
        definitions |= schema.pop("$defs", {})
        # The technique's own settings and the reserved keys that it accepts.
        taken = {key: value for key, value in Reserved.model_json_schema()["properties"].items() if key in wanted}
        required = [key for key in ("base", "bases") if wanted.get(key)]
        entry = {
            "properties": {**schema.get("properties", {}), **taken, "use": {"const": name}},
            "required": [*schema.get("required", []), *required],
        } | ({} if schema.get("additionalProperties", True) else {"additionalProperties": False})
        branches.append({"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": entry})
    uses = {"anyOf": [{"enum": list(offers())}, {"pattern": ":"}], "type": "string"}
    any_entry = {"type": "object", "properties": {"use": uses}, "allOf": branches}
    default = {"type": "string", "description": f"the technique of a search that does not name one; {_AUTO}"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "techniques.yaml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "default": default,
            "techniques": {"type": "object", "additionalProperties": any_entry},
        },
        "$defs": definitions,
    }
