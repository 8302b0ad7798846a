"""Techniques that a program gives: an object, or a class or function that makes one for the comparison."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from ragistry.errors import ConfigError, EvaluationError
from ragistry.evaluation.systems.entries import Variant
from ragistry.evaluation.systems.record import model_of, plain
from ragistry.evaluation.systems.systems import MODELS, System, Unmade, code_hash
from ragistry.protocols import Technique
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.shape import RESOURCES, complaints, retrieve_complaints, takes_everything, wanted_resources
from ragistry.utils.own_modules import written

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def attempted(make: Callable[[], Any]) -> Technique:
    """What ``make`` makes; an `Unmade` where that fails, or where it is not a technique."""
    try:
        made: Technique = make()
        wrong = retrieve_complaints(made)
    except Exception as error:  # noqa: BLE001, third-party code: what it raises goes into the report
        return Unmade(error)
    return Unmade(ConfigError("; ".join(wrong))) if wrong else made


def is_ready(given: Any) -> bool:
    """Whether a technique of a program is an object that needs nothing more."""
    return not isinstance(given, type) and callable(getattr(given, "retrieve", None))


def ready_system(name: str, given: Any) -> System:
    """A technique object over whatever store it was made with."""
    inner = given.technique if isinstance(given, RegisteredTechnique) else given
    configuration, not_resumed = _described(type(inner))
    try:
        config, state = _settings(inner)
        configuration |= {"config": config} if config else {}
        configuration |= {"state": state} if state else {}
    except (TypeError, ValueError, RecursionError) as error:
        not_resumed = not_resumed or f"what it keeps cannot be written down ({error})"
    return System(name, RegisteredTechnique(name, attempted(lambda: inner)), configuration, not_resumed=not_resumed)


def program_wants(given: Any) -> set[str]:
    """The resources that a class or function asks for."""
    if isinstance(given, type):
        try:
            return set(RESOURCES) if takes_everything(given) else set(wanted_resources(given))
        except (TypeError, ValueError):
            return set()  # what is wrong with it is said when it is made
    wanted = set(inspect.signature(given).parameters) if callable(given) else set()
    return wanted | {"embedder"} if "store" in wanted else wanted  # it may search the store with an embedder of its own


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
        raise EvaluationError(f"the grid changes {variant.technique!r}, which is not a class; give its class")
    return attempted(lambda: _called(given, variant, resources))


def described(given: Any, made: Technique, variant: Variant, models: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The configuration of what a class or function made, and why it is never resumed, if it is not."""
    configuration, not_resumed = _described(given if isinstance(given, type | FunctionType) else type(given))
    if not isinstance(given, type | FunctionType) and not not_resumed:
        not_resumed = "a method or an object made it, whose own state decides what it makes"
    if not isinstance(given, type) and not isinstance(made, Unmade):
        configuration["made"], unknown = _described(type(made))
        not_resumed = not_resumed or unknown
    judges = {name: model_of(models[name]) for name in MODELS[1:] if name in program_wants(given) and name in models}
    configuration |= {"config": plain(variant.changes)} | ({"models": judges} if judges else {})
    return configuration, not_resumed


def _described(kind: Any) -> tuple[dict[str, Any], str]:
    """The path and the code of a class or function; why that does not tell all, if it does not."""
    code = code_hash(kind)
    found = {"use": f"{written(kind.__module__)}:{kind.__qualname__}", "code": code}
    if code is None:
        return found, f"{kind.__qualname__} has no source file"
    if "<" in kind.__qualname__:
        return found, f"{kind.__qualname__} is made inside a function, whose variables it may use"
    return found, ""


def _settings(made: Any) -> tuple[Any, dict[str, Any]]:
    """The ``config`` of an object and its other attributes; functions of modules by name. Raises `TypeError`."""
    state = json.loads(json.dumps(getattr(made, "__dict__", {}), default=_named))
    return plain({"config": state.pop("config", None)})["config"], plain(state)


def _named(value: Any) -> dict[str, Any]:
    if isinstance(value, type | FunctionType):
        found, unknown = _described(value)
        if not unknown:
            return found
    raise TypeError(f"a {type(value).__name__}")


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
