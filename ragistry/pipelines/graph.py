"""Check the graph of a pipeline: find all errors before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from ragistry.techniques.classes import Complaint
from ragistry.utils.wording import did_you_mean, listed

END = "END"
"""The target of an action that ends the run."""

Transitions = Mapping[str, str] | str | None
"""The next step: by action, or one step for all actions; None ends the run."""

_BUDGET = "set a maximum number of steps: build(max_steps=…), in YAML max_steps: …"


class GraphOutline(NamedTuple):
    """A step in the graph: the actions it can return (None: unknown) and the next steps."""

    actions: frozenset[str] | None
    on: Transitions


def transitions(outline: GraphOutline) -> dict[str, str]:
    """Return the next step, or `END`, for every known action."""
    on = outline.on or END
    if isinstance(on, str):
        return dict.fromkeys(sorted(outline.actions or ("default",)), on)
    return dict(on)


def check_graph(steps: Mapping[str, GraphOutline], start: str | None, max_steps: object) -> Iterator[Complaint]:
    """Find all errors of a graph; ``start`` is by default the first step."""
    if not steps:
        yield ("steps",), "the pipeline has no steps"
        return
    for name, outline in steps.items():
        yield from _check_step(name, outline, steps)
    links = {name: list(dict.fromkeys(transitions(outline).values())) for name, outline in steps.items()}
    first = next(iter(steps)) if start is None else start
    if first not in steps:
        yield ("start",), f"start is {first!r}, which is not a step{did_you_mean(first, steps)}"
    else:
        reached = _reachable(first, links)
        for name in steps:
            if name not in reached:
                yield ("steps", name), f"step {name!r} cannot be reached from {first!r}"
    yield from _check_loops(links, max_steps)


def _check_step(name: str, outline: GraphOutline, steps: Mapping[str, GraphOutline]) -> Iterator[Complaint]:
    path = ("steps", name)
    if name in ("", END):
        yield path, f"a step cannot be called {name!r}; rename it"
    actions, on = outline.actions, outline.on
    if isinstance(on, Mapping) and on and actions is not None:
        for action in sorted(on.keys() - actions):
            suggestion = did_you_mean(action, actions) or f"; it returns {listed(actions)}"
            yield (*path, "on", action), f"step {name!r} never returns {action!r}{suggestion}"
        for action in sorted(actions - on.keys()):
            yield (*path, "on"), f"step {name!r} has no next step for {action!r}; add a step's name or {END!r}"
    named: dict[str, str] = {"": on} if isinstance(on, str) else dict(on or {})
    for action, target in named.items():
        if target not in steps and target != END:
            suggestion = did_you_mean(target, [*steps, END]) or f"; the steps are {listed([*steps, END])}"
            place, when = ((*path, "on", action), f" on {action!r}") if action else ((*path, "on"), "")
            yield place, f"step {name!r} leads to {target!r}{when}, which is not a step{suggestion}"


def _check_loops(links: Mapping[str, list[str]], max_steps: object) -> Iterator[Complaint]:
    try:
        TopologicalSorter(links).prepare()
    except CycleError as error:
        # The sorter reads links as dependencies, so it lists the steps of a loop backwards.
        loop = " → ".join(reversed(error.args[1]))
        if max_steps is None:
            yield ("max_steps",), f"steps {loop} form a loop; {_BUDGET}"
        comes_from: dict[str, list[str]] = {}
        for name, targets in links.items():
            for target in targets:
                # an unknown target is reported elsewhere; here it counts as the end
                comes_from.setdefault(target if target in links else END, []).append(name)
        endless = links.keys() - _reachable(END, comes_from)
        if endless:
            yield ("steps",), f"{END!r} cannot be reached from {listed(endless)}"


def _reachable(start: str, links: Mapping[str, list[str]]) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        fresh = [target for target in links.get(waiting.pop(), ()) if target not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
    return seen
