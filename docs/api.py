"""The reference of the Python interface, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from docs.markdown import code, table

MODULES = {
    "ragistry": "What most programs need.",
    "ragistry.library.service": "The library of a workspace: `workspace.library`.",
    "ragistry.library.ingest.report": "What an ingest reports.",
    "ragistry.answers.answer": "Answers with citations.",
    "ragistry.types": "The values that pass between the parts.",
    "ragistry.protocols": "What a technique, an embedder, a generator, a reranker and a store must be able to do.",
    "ragistry.pipelines": "Techniques and steps joined as a graph.",
    "ragistry.pipelines.answer": "An answer as a step of a graph.",
    "ragistry.evaluation": "Comparisons of techniques.",
    "ragistry.tools.search_library": "The library as a tool of a language model.",
    "ragistry.tools.langchain": "The library in LangChain.",
    "ragistry.tools.archives": "Archives as a tool of a language model.",
    "ragistry.library.contract": "The storage contract of documentation repositories.",
    "ragistry.ollama.client": "A client of Ollama.",
    "ragistry.errors": "Every error, as one tree.",
}


def api_modules() -> str:
    """A table of the modules."""
    return table(("module", "what it has"), [(code(name), summary) for name, summary in MODULES.items()])


def api_reference() -> str:
    """A section a module, with its public classes and functions. A name in two modules is listed at the first."""
    seen: set[int] = set()
    parts = []
    for name, summary in MODULES.items():
        module = import_module(name)
        parts.append(f"## {name}\n\n{summary}")
        if name == "ragistry.errors":
            parts += [_text(module), "\n".join(f"- `{key}`: {_text(getattr(module, key))}" for key in _public(module))]
            continue
        for key in _public(module):
            thing = getattr(module, key)
            if id(thing) not in seen and (inspect.isclass(thing) or inspect.isfunction(thing)):
                seen.add(id(thing))
                parts += [f"### {key}", *_described(thing)]
    return "\n\n".join(filter(None, parts))


def _public(module: Any) -> list[str]:
    """What ``__all__`` names, else what the module defines."""
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return list(getattr(module, "__all__", own and [key for key in own if not key.startswith("_")]))


def _described(thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        yield _code(f"def {thing.__name__}{_signature(thing)}")
        yield _text(thing)
        return
    protocol = getattr(thing, "_is_protocol", False)
    yield _code(f"class {thing.__name__}{'(Protocol)' if protocol else _signature(thing).partition(' -> ')[0]}")
    yield _text(thing)
    for key, member in _members(thing).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if key.startswith("_") or not inspect.getdoc(plain):
            continue
        if isinstance(plain, property):
            yield f"**`{key}`**: `{_Bare(plain.fget.__annotations__.get('return', ''))}`. {_text(plain)}"
        elif inspect.isfunction(plain):
            yield _code(f"{key}{_signature(plain)}")
            yield _text(plain)


def _members(thing: type) -> dict[str, Any]:
    """The members of a class, and those that it inherits from other classes of the package."""
    found: dict[str, Any] = {}
    for base in thing.__mro__:
        if base.__module__.startswith("ragistry."):
            found = {**found, **{key: value for key, value in vars(base).items() if key not in found}}
    return found


class _Bare:
    """An annotation or a default as in the code; a function or an object is ``…``."""

    def __init__(self, written: Any) -> None:
        written = getattr(written, "__forward_arg__", written)
        self.written = written if isinstance(written, str) else re.sub(r"<.* at 0x\w+>", "…", repr(written))

    def __repr__(self) -> str:
        return self.written


def _signature(function: Callable[..., Any]) -> str:
    """With one parameter a line where it is long."""
    try:
        getattr(function, "model_rebuild", bool)()  # a model that is built on first use has no signature before
        signature = inspect.signature(function)
    except ValueError:  # of a class that has none
        return ""
    parameters = [
        parameter.replace(
            annotation=parameter.empty if parameter.annotation is parameter.empty else _Bare(parameter.annotation),
            default=parameter.empty if parameter.default is parameter.empty else _default(parameter.default),
        )
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    returned = "" if signature.return_annotation is signature.empty else f" -> {_Bare(signature.return_annotation)}"
    whole = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    if len(whole) + len(returned) <= 100:
        return whole + returned
    return "(\n" + "".join(f"    {part},\n" for part in _split(whole[1:-1])) + f"){returned}"


def _default(value: Any) -> Any:
    return value if isinstance(value, str) else _Bare(value)


def _split(parameters: str) -> list[str]:
    """Parameters apart, at the commas outside brackets and quotes."""
    parts, depth = [""], 0
    for character in parameters:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _code(text: str) -> str:
    return f"```py\n{text}\n```"


def _text(thing: Any) -> str:
    return inspect.getdoc(thing) or ""
