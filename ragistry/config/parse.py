"""Check a mapping against a pydantic model, with all problems in one error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ragistry.config.problems import dotted, explain
from ragistry.errors import InvalidConfigError

Model = TypeVar("Model", bound=BaseModel)
Configuration = Mapping[str, Any] | BaseModel
"""The configuration of a part: as a file has it, or as the model of its settings."""


def parse_config(model: type[Model], config: Configuration, owner: str) -> Model:
    """Return ``config`` as ``model``. Raises `InvalidConfigError` with ``owner`` and every invalid value."""
    try:
        return model.model_validate(config)
    except ValidationError as error:
        complaints = [f"{dotted(item['loc'])}: {explain(item, model)}" for item in error.errors(include_url=False)]
        raise InvalidConfigError(f"{owner}: {'; '.join(complaints)}") from error
