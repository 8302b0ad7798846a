"""Answers in the shape of a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from ragistry.errors import ModelError
from ragistry.ollama.failures import excerpt

Schema = type[BaseModel] | Mapping[str, Any]
"""A pydantic model, or a JSON Schema."""


def as_format(schema: Schema) -> dict[str, Any]:
    """The JSON Schema that Ollama takes as ``format``."""
    return schema.model_json_schema() if isinstance(schema, type) else dict(schema)


def check_answer(answer: str, schema: Schema, model: str) -> None:
    """Raise `ModelError` unless ``answer`` is JSON and, where the schema is a pydantic model, valid by it."""
    try:
        if isinstance(schema, type):
            schema.model_validate_json(answer)
        else:
            json.loads(answer)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise ModelError(
            f"{model!r} said {excerpt(answer)!r}, which does not fit {error.title}: {where}: {first['msg']}"
        ) from error
    except ValueError as error:
        raise ModelError(f"{model!r} said {excerpt(answer)!r}, which is not JSON: {error}") from error
