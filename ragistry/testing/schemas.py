"""The simplest answer that fits a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EMPTY: dict[str, Any] = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}


def example_of(schema: Mapping[str, Any]) -> Any:
    """Return the simplest value that the schema accepts, for the keywords that pydantic writes."""
    return _example(schema, schema.get("$defs", {}))


def _example(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _example(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], definitions)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if schema.get("type") == "object":
        return {name: _example(part, definitions) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [_example(schema.get("items", {}), definitions)] * max(1, schema.get("minItems", 1))
    return schema.get("minimum", _EMPTY.get(schema.get("type", "string")))
