"""What techniques say about themselves: their first sentence, and the JSON Schema of techniques.yaml."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel

from ragistry.errors import ConfigError
from ragistry.techniques.catalogue import find_class, offers
from ragistry.techniques.shape import wanted_resources


def config_schema(cls: type[Any]) -> dict[str, Any] | None:
    """The schema of a technique's own configuration; None where the class publishes none."""
    model = getattr(cls, "Config", None)
    return model.model_json_schema() if isinstance(model, type) and issubclass(model, BaseModel) else None


def first_sentence(cls: type[Any]) -> str:
    """The first sentence of a class's docstring as plain text: what it does."""
    paragraph = " ".join(re.split(r"\n\s*\n", (cls.__doc__ or "").strip())[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0].rstrip(":").replace("`", "")


def techniques_schema() -> dict[str, Any]:
    """A schema that accepts every entry that the registry would load; plugins that are broken are left out."""
    definitions: dict[str, Any] = {}
    branches = []
    for name in offers():
        try:
            entry, inner = _entry_schema(name)
        except ConfigError:
            continue
        definitions |= inner
        branches.append({"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": entry})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "techniques.yaml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "default": {
                "type": "string",
                "description": "the technique of a search that names none; "
                "auto: hybrid where the store searches words, else naive",
            },
            "techniques": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {"use": {"anyOf": [{"enum": list(offers())}, {"pattern": ":"}], "type": "string"}},
                    "allOf": branches,
                },
            },
        },
        "$defs": definitions,
    }


def _entry_schema(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an entry that uses this technique may hold, and the definitions that it refers to."""
    cls = find_class(name)
    schema = config_schema(cls) or {"properties": {}, "additionalProperties": True}
    properties = {"use": {"const": name}, **schema.get("properties", {})}
    wanted = wanted_resources(cls)
    required = list(schema.get("required", []))
    if "base" in wanted:
        properties["base"] = {
            "type": "string",
            "description": "the technique that this one stands on; "
            "auto: hybrid where the store searches words, else naive",
        }
        required += ["base"] if wanted["base"] else []
    if "bases" in wanted:
        properties["bases"] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        required += ["bases"] if wanted["bases"] else []
    entry: dict[str, Any] = {"properties": properties, "required": required}
    if not schema.get("additionalProperties", True):
        entry["additionalProperties"] = False
    return entry, schema.get("$defs", {})
