"""What can be a step: a technique, or a PocketFlow node that keeps clear of PocketFlow's traps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from inspect import getattr_static, isroutine, signature
from typing import Any

from pocketflow import AsyncNode, BaseNode, Flow, Node

from ragistry.errors import ConfigError, QueryError
from ragistry.pipelines.node import TechniqueNode
from ragistry.types import Where
from ragistry.utils.limits import check_top_k
from ragistry.utils.resolve import resolve_object
from ragistry.utils.suggest import listed
from ragistry.utils.where import normalise


def actions_of(part: Any) -> frozenset[str] | None:
    """What a step can return: a technique ``found`` or ``empty``, a node what it declares; None: not known."""
    return declared_actions(part) if isinstance(part, BaseNode) else TechniqueNode.actions


def declared_actions(node: BaseNode | type[BaseNode]) -> frozenset[str] | None:
    """The ``actions`` of a node or its class; None where there are none, or no set of names."""
    actions = getattr(node, "actions", None)
    if isinstance(actions, Set) and actions and all(isinstance(action, str) for action in actions):
        return frozenset(actions)
    return None


def node_class(spec: str) -> type[BaseNode]:
    """The class that ``"module:Class"`` names. Raises `ConfigError` where there is none, or it is no node."""
    found = resolve_object(spec)
    if not isinstance(found, type) or not issubclass(found, BaseNode):
        raise ConfigError(f"{spec!r} is {found!r}; name a class that inherits from pocketflow.Node")
    return found


def check_class(cls: type[BaseNode], given: Any) -> Iterator[tuple[str, str]]:
    """What can be told of a node before it is made: ``node`` or ``with``, and what is wrong with it."""
    silent = declared_actions(cls) is None and not _computes_actions(cls)
    if silent and cls.__init__ in (BaseNode.__init__, Node.__init__):  # nor does its __init__
        yield "node", _silent(cls)
    try:
        if isinstance(given, Mapping) and all(isinstance(key, str) for key in given):
            signature(cls).bind(**given)
    except TypeError as error:
        yield "with", f"{cls.__name__} cannot be made with {listed(given)}: {error}"


def _computes_actions(cls: type[BaseNode]) -> bool:
    """Whether ``actions`` is a property, which tells them of a node that is made."""
    found = getattr_static(cls, "actions", None)
    return hasattr(type(found), "__get__") and not isroutine(found)


def _silent(cls: type[BaseNode]) -> str:
    return f"{cls.__name__} does not say what it returns; write in its class: actions = frozenset({{'default'}})"


def check_part(part: Any, top_k: int | None, where: Where | None) -> Iterator[str]:
    """Everything that keeps ``part`` from being a step with these settings."""
    if isinstance(part, BaseNode):
        yield from _check_node(part)
        if top_k is not None or where is not None:
            yield f"top_k and where are for techniques; give them to {type(part).__name__} itself"
        return
    if isinstance(part, type) or not callable(getattr(part, "retrieve", None)):
        yield f"{part!r} is neither a technique nor a PocketFlow node; give an object that has retrieve(), or a Node"
    settings: list[tuple[Callable[[Any], object], Any]] = [(check_top_k, top_k), (normalise, where)]
    for check, value in settings:
        try:
            if value is not None:
                check(value)
        except QueryError as error:
            yield str(error)


def _check_node(node: BaseNode) -> Iterator[str]:
    kind = type(node).__name__
    if actions_of(node) is None:
        yield _silent(type(node))
    if isinstance(node, AsyncNode):
        yield f"{kind} is asynchronous, and steps run one after the other in the caller's thread; make it a Node"
    elif isinstance(node, Flow):
        yield f"{kind} is a whole flow, whose inside is not checked; build it as a pipeline, which is a technique"
    elif not hasattr(node, "successors"):
        yield f"{kind}.__init__ does not call super().__init__()"
    else:
        if node.successors:
            yield f"{kind} has transitions of its own, on {listed(node.successors)}; say them with on="
        retries = getattr(node, "max_retries", 1)
        if not isinstance(retries, int) or retries < 1:
            yield f"{kind} has max_retries={retries!r}, with which PocketFlow never runs it; 1 is one attempt"
