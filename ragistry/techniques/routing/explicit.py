"""Routers that ignore the query: the caller names the target, or every target is searched."""

from __future__ import annotations

from collections.abc import Sequence

from ragistry.errors import QueryError
from ragistry.techniques.routing.route import Route
from ragistry.techniques.routing.target import Reachable
from ragistry.types import Where
from ragistry.utils.wording import listed


class ExplicitRouter:
    """The caller names the targets, by a condition on ``collection``."""

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:  # noqa: ARG002
        """See `Router`. Raises `QueryError` unless the condition says which targets."""
        names = tuple(item.target.name for item in within)
        if where is None:
            besides = [item.target.name for item in within if item.target.kind != "collection"]
            raise QueryError(
                "no collection is named, and router 'explicit' does not choose; the search has to name one of "
                f"{listed([name for name in names if name not in besides])} as its `collection`"
                + (f", or {listed(besides)} as where={{'collection': NAME}}" if besides else "")
            )
        return Route("explicit", "named", names, dict.fromkeys(names, 1.0))


class AllRouter:
    """Every target."""

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:  # noqa: ARG002
        """See `Router`."""
        names = tuple(item.target.name for item in within)
        return Route("all", "all", names, dict.fromkeys(names, 1.0))
