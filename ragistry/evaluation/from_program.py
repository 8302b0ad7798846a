"""Techniques that a program gives: an object, or a class or function that makes one for the comparison."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import FunctionType, MethodType
from typing import Any

from ragistry.errors import ConfigError, EvaluationError
from ragistry.evaluation.configured import asked
from ragistry.evaluation.contenders import Contender, Unmade
from ragistry.evaluation.grid import Variant
from ragistry.evaluation.identity import Description, encloses, is_named, name_of
from ragistry.evaluation.own_code import code_of
from ragistry.protocols import Technique
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.shape import complaints, retrieve_complaints

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class NeedsIndexError(Exception):
    """A technique asks for the store before there is one."""


def attempted(make: Callable[[], Any]) -> Technique:
    """What ``make`` makes; an `Unmade` where that fails, or where it is no technique.

    Raises `NeedsIndexError`.
    """
    try:
        made: Technique = make()
        wrong = retrieve_complaints(made)
    except NeedsIndexError:
        raise
    except Exception as error:  # noqa: BLE001, a technique may be anybody's: what it raises goes into the report
        return Unmade(error)
    return Unmade(ConfigError("; ".join(wrong))) if wrong else made


def is_ready(given: Any) -> bool:
    """Whether a technique of a program is an object that needs nothing more."""
    return not isinstance(given, type) and callable(getattr(given, "retrieve", None))


def from_ready(name: str, given: Any) -> Contender:
    """A technique object over whatever store it was made with."""
    inner = given.technique if isinstance(given, RegisteredTechnique) else given
    description = Description()
    configuration = description.of(inner)
    technique = RegisteredTechnique(name, attempted(lambda: inner))
    return Contender(name, technique, configuration, unknown="; ".join(description.unknown))


def made_of(given: Any, variant: Variant, resources: Mapping[str, Any]) -> Technique:
    """A technique that is made for this comparison, by its class or by a function.

    A class is called with its configuration (empty, or what a grid says), a function with none; both get those of the
    ``resources`` that they have a parameter for. Raises `EvaluationError` for what is neither.
    """
    if not callable(given):
        raise EvaluationError(
            f"technique {variant.technique!r} is {given!r:.80}; give a name of techniques.yaml, an object with "
            "retrieve(query), or a class or function that makes one"
        )
    if variant.changes and not isinstance(given, type):
        raise EvaluationError(f"the grid changes {variant.technique!r}, which is no class; give its class")
    return attempted(lambda: _called(given, variant, resources))


def described(
    given: Any, made: Technique, variant: Variant, resources: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """The configuration of what a class or function made, and what it leaves open.

    A class or function of a module, what it was given, and the data that it read when it was called decide what it
    makes: data is seen as far as what was made keeps it as plain values. Of one that is made within another function
    nobody knows what it took from there, nor of a method or an object that is called what it took from its object:
    what it made has to tell all.
    """
    if isinstance(made, Unmade):
        return {"use": name_of(given)}, ""
    description = Description(resources)
    found = description.of(made) | asked(inspect.signature(given).parameters, resources)
    if not isinstance(given, type):
        found["made_by"] = {"use": name_of(given), "code": _code(given)}
    whole = not encloses(given) if isinstance(given, type) else isinstance(given, FunctionType) and is_named(given)
    certain = whole and _code(given) is not None
    return {**found, "changes": dict(variant.changes)}, "" if certain else "; ".join(description.unknown)


def kept_by(made: Technique, resources: Mapping[str, Any]) -> dict[str, str]:
    """A hash of all plain values that an entry's technique keeps, what it stands on included.

    Its entry and its code do not tell what it has read from a file of its own when it was made. A file that it reads
    later, and what it keeps that has no plain value, is not seen.
    """
    if isinstance(made, Unmade):
        return {}
    found = json.dumps(Description(resources).of(made), sort_keys=True)
    return {"keeps": sha256(found.encode()).hexdigest()}


def _code(given: Any) -> str | None:
    return code_of(given if isinstance(given, type | FunctionType | MethodType) else type(given))


def _called(given: Any, variant: Variant, resources: Mapping[str, Any]) -> Any:
    if isinstance(given, type) and (wrong := complaints(given)):
        raise ConfigError("; ".join(wrong))
    config = [dict(variant.changes)] if isinstance(given, type) else []
    wanted = list(inspect.signature(given).parameters.values())[len(config) :]
    missing = [
        one.name for one in wanted if one.default is one.empty and one.name not in resources and one.kind in NAMED
    ]
    if missing:
        raise ConfigError(f"{variant.technique!r} needs {', '.join(missing)}; there are {', '.join(resources)}")
    return given(*config, **{one.name: resources[one.name] for one in wanted if one.name in resources})
