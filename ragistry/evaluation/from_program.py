"""Techniques that a program gives: an object, or a class or function that makes one for the comparison."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
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
    found["changes"] = dict(variant.changes)
    return (found | _not_seen(description), "") if certain else (found, "; ".join(description.unknown))


def kept_by(made: Technique, resources: Mapping[str, Any]) -> dict[str, Any]:
    """``keeps``: a hash of each plain value that an entry's technique keeps, what it stands on included, by path.

    Its entry and its code do not tell what it has read from a file of its own when it was made. A file that it reads
    later is not seen, nor is what it keeps that has no plain value: ``not_seen`` names that.
    """
    if isinstance(made, Unmade):
        return {}
    description = Description(resources)
    kept: dict[str, list[Any]] = {}
    for path, value in _kept(description.of(made)):
        kept.setdefault(path, []).append(value)  # two may have one path: 'code' is said of all, and may be kept, too
    keeps = {
        path: sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32] for path, values in kept.items()
    }
    return {"keeps": keeps} | _not_seen(description)


def _kept(found: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """What is said of an object, and of the objects that it keeps, each by its path."""
    for name, value in found.items():
        if name not in ("state", "steps") or not isinstance(value, dict):
            yield f"{path}{name}", value
            continue
        for inside, kept in value.items():
            if isinstance(kept, dict) and {"use", "code"} <= kept.keys():
                yield from _kept(kept, f"{path}{inside}.")
            else:
                yield f"{path}{inside}", kept


def _not_seen(description: Description) -> dict[str, str]:
    return {"not_seen": "; ".join(description.unknown)} if description.unknown else {}


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
