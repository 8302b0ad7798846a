"""A route: every target's score, the rule that decided, and the chosen targets."""

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

    ``margin``: distance of the best target's score to the second, if there are two. ``fit``: how well the best target
    fits the query, 0 to 1, if the router computes it; below the threshold nothing is searched. ``note``: a remark.
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
    """Chooses among two or more targets."""

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:
        """Route ``query``. ``within``: the targets, each with the remaining part of the caller's condition ``where``,
        which all compared chunks meet."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When a target is chosen.

    ``margin``: targets that score less than this below the best are searched with it, ``most`` targets in all.
    ``threshold``: the ``fit`` below which nothing is searched. All 0 to 1 but ``most``.
    """

    margin: float = 0.0
    threshold: float = 0.0
    most: int = 3


def decide(router: str, scores: Mapping[str, float], fit: float, limits: Limits, note: str = "") -> Route:
    """The route for these scores. Raises `TechniqueError` for a score that is not finite."""
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
    """The scores, highest first; equal ones by name."""
    return {name: -below for below, name in sorted([(-score, name) for name, score in scores.items()])}
