"""Where a query goes and why: every target's score, the rule that fired, and what it chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, Protocol

from ragistry.errors import TechniqueError
from ragistry.techniques.routing.target import Reachable
from ragistry.types import Where

Rule = Literal[
    "no targets",
    "only target",
    "named",
    "best",
    "small margin",
    "nothing fits",
    "no evidence",
    "model",
    "fallback",
    "all",
]


@dataclass(frozen=True, slots=True)
class Route:
    """A decision. ``scores``: best first; ``chosen``: the names of the targets that are searched, none to abstain.

    ``margin``: by how much the best target scores above the second, where there are two. ``fit``: how well what was
    found fits the query, 0 to 1, where the router can tell; below the threshold nothing is searched. ``note``: what a
    reader should know besides.
    """

    router: str
    rule: Rule
    chosen: tuple[str, ...]
    scores: Mapping[str, float]
    margin: float | None = None
    fit: float | None = None
    note: str = ""

    def detail(self) -> dict[str, Any]:
        """The route as plain values, for a trace and for ``--json``."""
        return {
            "router": self.router,
            "rule": self.rule,
            "chosen": list(self.chosen),
            "scores": dict(self.scores),
            "margin": self.margin,
            "fit": self.fit,
            "note": self.note,
        }


class Router(Protocol):
    """Chooses among targets; there are two or more of them whenever it is asked."""

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:
        """Where ``query`` goes. ``within``: the targets, each with what is left of the caller's condition ``where``;
        all that is looked at meets it."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When a route is sure enough.

    ``margin``: targets that score less than this below the best are searched with it, ``most`` targets in all.
    ``threshold``: the ``fit`` below which nothing is searched. All 0 to 1 but ``most``.
    """

    margin: float = 0.0
    threshold: float = 0.0
    most: int = 3


def decide(router: str, scores: Mapping[str, float], fit: float, limits: Limits, note: str = "") -> Route:
    """The route that scores lead to. Raises `TechniqueError` for a score that is not finite."""
    ordered = best_first(scores)
    values = list(ordered.values())
    if not (isfinite(fit) and all(map(isfinite, values))):
        strange = next((name for name, value in ordered.items() if not isfinite(value)), "fit")
        raise TechniqueError(f"router {router!r}: the score of {strange!r} is not a finite number; check its embedder")
    margin = values[0] - values[1] if len(values) > 1 else None
    if fit < limits.threshold:
        return Route(router, "nothing fits", (), ordered, margin, fit, note)
    if not any(values):
        return Route(router, "no evidence", tuple(ordered), ordered, margin, fit, note)
    near = [name for name, value in ordered.items() if values[0] - value < limits.margin] or [next(iter(ordered))]
    rule: Rule = "best" if len(near) == 1 else "small margin"
    return Route(router, rule, tuple(near[: limits.most]), ordered, margin, fit, note)


def best_first(scores: Mapping[str, float]) -> dict[str, float]:
    """The scores, the highest first; equal ones in the order of the names."""
    return {name: -below for below, name in sorted([(-score, name) for name, score in scores.items()])}
