"""One kind of tool for language models: a request that is checked, a function, and a text of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from typing import Any

from pydantic import ValidationError

from ragistry.tools.failures import CallError, failure_text
from ragistry.types import Document
from ragistry.utils.dataclass_json import adapter_of, from_json, to_json
from ragistry.utils.wording import did_you_mean, problem_of

# Metadata of fields that several requests have
COLLECTION = {"description": "Only this collection.", "short": "-c"}
SOURCE = {"description": "Name of a source, as results show it."}
TOKENS = {"description": "Maximum tokens of the answer.", "ge": 200, "le": 50_000}
CURSOR = {"description": "Only to continue: the cursor of the last answer, with all other arguments unchanged."}


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer to a call.

    Attributes:
        tool: The tool.
        text: Text for the model.
        found: What the tool returned; None if the text is an error message.
        request: The request; None if the arguments are invalid.
    """

    tool: Tool
    text: str
    found: Any = None
    request: Any = None

    @property
    def error(self) -> bool:
        """Whether the text is an error message."""
        return self.found is None

    @property
    def structured(self) -> dict[str, Any] | None:
        """The answer as plain values; None if it is an error."""
        return None if self.found is None else to_json(self.tool.answer_of(self.found))

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents that the text quotes, if the tool searches."""
        return tuple(getattr(self.found, "documents", ()))

    @property
    def cursor(self) -> str:
        """The cursor that continues the answer; empty at the end."""
        return getattr(self.found, "cursor", "")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: a function of what is in reach and of a request.

    Attributes:
        name: Name of the tool.
        title: Name for people.
        description: Description for language models.
        request: Type of the request, a dataclass. The metadata of a field have its description for models as ``model``
            or ``description``.
        answer: Type of the answer, a dataclass.
        run: The function. It raises `CallError`.
        text: Writes what the function returns as text.
        arguments: Names of the fields of the request that a call may set; by default all.
        answer_of: Makes an answer of what the function returns, if that is not an answer already.
    """

    name: str
    title: str
    description: str
    request: type[Any]
    answer: type[Any]
    run: Callable[[Any, Any], Any]
    text: Callable[[Any], str]
    arguments: tuple[str, ...] = ()
    answer_of: Callable[[Any], Any] = lambda found: found

    def options(self) -> dict[str, Field[Any]]:
        """Return the fields that a call may set, by name."""
        return {one.name: one for one in fields(self.request) if not self.arguments or one.name in self.arguments}

    def parameters(self) -> dict[str, Any]:
        """Build the JSON Schema of the arguments."""
        described = adapter_of(self.request).json_schema()
        properties = {name: _plain(described["properties"][name], one) for name, one in self.options().items()}
        return {"type": "object", "properties": properties, "required": described.get("required", [])}

    def schema(self) -> dict[str, Any]:
        """Return the entry for ``tools`` of a request in OpenAI's format."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters()}
        return {"type": "function", "function": function}

    def call(self, reach: Any, arguments: Any) -> ToolAnswer:
        """Answer a call; its arguments are a mapping or JSON. Never raises: errors are described to the model."""
        request = None
        try:
            request = self.request_of(arguments)
            found = self.run(reach, request)
            return ToolAnswer(self, self.text(found), found, request)
        except Exception as error:  # noqa: BLE001, a user's technique may raise anything, and the model needs an answer
            return ToolAnswer(self, failure_text(error, self.name, limited=reach.limited), request=request)

    def request_of(self, arguments: Any) -> Any:
        """Check the arguments of a call, a mapping or its JSON. Raises `CallError`."""
        # A model that must pass every argument may pass "" for none.
        values = {key: value for key, value in _read(arguments, [*self.options()]).items() if value is not None}
        for key in ("where", "place"):
            if isinstance(values.get(key), str):
                values[key] = _object(key, values[key])
        for key in ("collection", "cursor"):
            if values.get(key) == "":
                del values[key]
        try:
            json.dumps(values, ensure_ascii=False, default=str).encode()
            return from_json(self.request, values)
        except UnicodeEncodeError as error:
            raise CallError("an argument has half a character; send whole characters") from error
        except ValidationError as error:
            raise CallError(_problem(error)) from error


def _plain(described: Mapping[str, Any], argument: Field[Any]) -> dict[str, Any]:
    """Describe an argument without what a model needs not: titles, defaults, and that it may be null."""
    one = {**described, **described.get("anyOf", [{}])[0]}
    text = argument.metadata.get("model") or argument.metadata["description"]
    return {key: one[key] for key in ("type", "minimum", "maximum") if key in one} | {"description": text}


def _read(arguments: Any, known: Sequence[str]) -> Mapping[str, Any]:
    """Return the arguments as a mapping with no keys but ``known``."""
    example = f'pass {{"{known[0]}": "…"}}'
    if isinstance(arguments, str | bytes):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise CallError(f"the arguments are not JSON: {str(arguments[:100])!r}; {example}") from error
    if not isinstance(arguments, Mapping):
        raise CallError(f"the arguments must be an object, got {repr(arguments)[:100]}; {example}")
    for key in arguments:
        if key not in known:
            name = str(key)[:100]
            raise CallError(f"unknown argument {name!r}{did_you_mean(name, known)}; use {', '.join(known)}")
    return arguments


def _object(name: str, text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        raise CallError(f'{name} is not JSON: {text[:100]!r}; write an object such as {{"page": 3}}') from error


def _problem(error: ValidationError) -> str:
    """Describe the first problem of the arguments."""
    wrong = error.errors()[0]
    name = ".".join(map(str, wrong["loc"]))
    if wrong["type"] == "string_too_long":
        length, limit = len(wrong["input"]), wrong["ctx"]["max_length"]
        return f"{name} has {length:,} characters, the limit is {limit:,}; shorten it"
    got = "" if wrong["type"] == "missing" else f", got {repr(wrong['input'])[:100]}"
    return f"{name}: {problem_of(wrong)}{got}; correct it"
