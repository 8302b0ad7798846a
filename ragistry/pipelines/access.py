"""The caller's condition on metadata during a run: it limits access, so no step may remove it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ragistry.errors import PipelineError
from ragistry.types import Where
from ragistry.utils.where import Condition, matches, normalise


class Access:
    """The documents that a run may see; `uphold` is called after each step."""

    def __init__(self, shared: dict[str, Any]) -> None:
        where = shared.get("where")
        self.required = None if where is None else normalise(where)
        self.current = shared["where"] = self._copy(self.required)

    def uphold(self, giver: str, shared: dict[str, Any]) -> None:
        """Add the condition to a ``where`` changed by a step, and check the step's documents.

        Raises `PipelineError`, with ``giver`` as the step's name, for a document that does not meet the condition.
        """
        if self.required is None:
            return
        if shared.get("where") is not self.current:
            self.current = shared["where"] = self._copy(normalise(both(self.required, shared.get("where"))))
        for document in shared["documents"]:
            if not matches(self.required, document.metadata):
                raise PipelineError(
                    f"{giver} gave document {document.id!r}, which does not meet where {self.required!r}; "
                    "a technique and a node must hold to the shared 'where'"
                )

    @staticmethod
    def _copy(condition: Condition | None) -> dict[str, Any] | None:
        """A copy for the steps, which may change it without changing the requirement."""
        return None if condition is None else deepcopy(dict(condition))


def both(first: Where, second: Where | None) -> Where:
    """The conjunction of two conditions; without a second one, the first."""
    return first if second is None else {"$and": [first, second]}
