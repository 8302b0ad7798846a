"""Collect all errors of the configuration with their places, and report them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from ragistry.config.yaml_file import YamlFile
from ragistry.errors import InvalidConfigError
from ragistry.utils.wording import did_you_mean, problem_of, shown


@dataclass(slots=True)
class Problems:
    """Collects problems while files are checked; `report` raises them together.

    ``keys``: to the values that lines of `add` are about.
    """

    lines: list[str] = field(default_factory=list)
    keys: dict[str, tuple[str | int, ...]] = field(default_factory=dict)

    def add(self, file: YamlFile, keys: Sequence[str | int], message: str) -> None:
        """Add a problem with the value at ``keys``."""
        line = f"{file.place(keys)}: {message}"
        self.lines.append(line)
        self.keys[line] = tuple(keys)

    def names(self, keys: Sequence[str | int]) -> bool:
        """Return whether the value at ``keys``, or one in it, has a problem already."""
        return any(one[: len(keys)] == tuple(keys) for one in self.keys.values())

    def add_validation(
        self, file: YamlFile, keys: Sequence[str | int], model: type[BaseModel], error: ValidationError
    ) -> None:
        """Add every error of pydantic about the mapping at ``keys``."""
        for item in error.errors(include_url=False):
            path = [part for part in item["loc"] if not str(part).startswith(("function-", "constrained-", "[key]"))]
            self.add(file, [*keys, *path], f"{dotted([*keys, *path])}: {explain(item, model)}")

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Collect the `InvalidConfigError` of the block for the report."""
        try:
            yield
        except InvalidConfigError as error:
            first, *others = str(error).split("\n")
            self.lines.extend([line.strip() for line in others] or [first])

    def report(self) -> None:
        """Raise `InvalidConfigError` with every problem, if there are any."""
        if not self.lines:
            return
        if len(self.lines) == 1:
            raise InvalidConfigError(self.lines[0])
        raise InvalidConfigError("\n".join([f"{len(self.lines)} problems:", *(f"  {line}" for line in self.lines)]))


def _model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel]:
    """Return the model of the mapping at ``path``; without one, the outer model."""
    for key in path:
        field = model.model_fields.get(str(key))
        inner = [] if field is None else [field.annotation, *get_args(field.annotation)]
        model = next((kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    return model


def dotted(keys: Sequence[str | int]) -> str:
    """Return a path in dotted form, such as ``techniques.naive.top_k``."""
    return ".".join(str(key) for key in keys)


def explain(item: Any, model: type[BaseModel]) -> str:
    """Describe one error of pydantic, with the value and, for an unknown name, the known ones."""
    name = str(item["loc"][-1]) if item["loc"] else ""
    if item["type"] == "extra_forbidden":
        inner = _model_at(model, item["loc"][:-1])
        if name in (retired := getattr(inner, "retired", {})):
            return f"{name!r} {retired[name]}"
        known = [field.alias or key for key, field in inner.model_fields.items()]
        return f"unknown setting {name!r}{did_you_mean(name, known)}; there are {', '.join(sorted(known)) or 'none'}"
    if item["type"] == "missing":
        return "is missing"
    if item["type"] in ("bool_parsing", "bool_type"):
        return f"write true or false{_got(item['input'], hidden=_is_hidden(model, item['loc']))}"
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    return f"{problem_of(item)}{_got(item['input'], hidden=_is_hidden(model, item['loc']))}"


def _is_hidden(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Return whether messages must not show the value at ``path``, such as headers with a password."""
    fields = [_model_at(model, path[:place]).model_fields.get(str(key)) for place, key in enumerate(path)]
    return any(field is not None and not field.repr for field in fields)


def _got(value: Any, *, hidden: bool) -> str:
    """Describe a value; for containers, which may be long or secret, only type and length."""
    if hidden:
        return ""
    if isinstance(value, list | tuple | dict):
        return f", got a {type(value).__name__} of {len(value):,}"
    return f", got {shown(value)}"


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
