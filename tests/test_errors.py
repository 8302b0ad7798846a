"""The tree in the docstring of errors.py is the tree in the code."""

from __future__ import annotations

import inspect
import re

import ragistry.errors as errors


def test_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    documented: dict[str, tuple[str, set[str]]] = {}
    above: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^( {4}[ │├└─]*)(\w+Error)(?: \((\w+)\))?$", line):
            depth = len(match[1])
            above = {level: name for level, name in above.items() if level < depth}
            documented[match[2]] = (above[max(above)] if above else "", {match[3]} - {None})
            above[depth] = match[2]
    real = {
        name: (
            next((base.__name__ for base in cls.__bases__ if issubclass(base, errors.RagistryError)), ""),
            {base.__name__ for base in cls.__bases__ if base.__module__ == "builtins"} - {"Exception"},
        )
        for name, cls in inspect.getmembers(errors, inspect.isclass)
    }
    assert documented == real


def test_every_error_prints_its_message_as_it_is() -> None:
    for name, cls in inspect.getmembers(errors, inspect.isclass):
        assert str(cls("what is wrong; the remedy")) == "what is wrong; the remedy", name
