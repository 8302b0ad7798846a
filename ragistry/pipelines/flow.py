"""Run the steps of a pipeline, with errors where PocketFlow would end silently."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import Any

from pocketflow import BaseNode, Flow, Node

from ragistry.errors import PipelineError
from ragistry.pipelines.graph import END
from ragistry.pipelines.node import TechniqueNode
from ragistry.trace import stage
from ragistry.types import OUTSIDE, Document, Where, is_outside
from ragistry.utils.ids import PLACE
from ragistry.utils.where import Condition, both, keys_of, matches, normalise
from ragistry.utils.wording import did_you_mean, listed


@dataclass(frozen=True, slots=True)
class Step:
    """A named node, and the next step or `END` for every action that it can return."""

    name: str
    node: BaseNode
    on: Mapping[str, str]


class PipelineFlow(Flow):  # type: ignore[misc] # untyped base
    """A PocketFlow flow that raises `PipelineError` where PocketFlow would silently continue or end.

    Its shared mapping has ``query``, ``original_query``, ``top_k``, ``where``, ``documents`` and the values that nodes
    add. Each step runs on a copy of its node, so attributes set by a node are lost after the step; results belong in
    the shared mapping. The flow keeps no state of a run, so many threads can share it.
    """

    def __init__(
        self, name: str, steps: Mapping[str, Step], start: str, max_steps: int | None, max_seconds: float | None
    ) -> None:
        super().__init__(start=steps[start].node)
        self.name, self.steps, self.first = name, steps, start
        self.max_steps, self.max_seconds = max_steps or inf, max_seconds or inf
        for step in steps.values():
            step.node.successors = {action: steps[target].node for action, target in step.on.items() if target != END}

    def _orch(self, shared: dict[str, Any], params: dict[str, Any] | None = None) -> str:
        """Run step after step until one leads to `END`; return the last action."""
        shared.setdefault("original_query", shared["query"])
        shared.setdefault("documents", [])
        access = Access(shared)
        deadline = monotonic() + self.max_seconds
        path: list[str] = []
        name, action = self.first, ""
        while name != END:
            self._check_budgets(path, deadline)
            path.append(name)
            step = self.steps[name]
            action = self._visit(step, shared, params or self.params, path)
            access.uphold(self._title(step), shared, is_technique=isinstance(step.node, TechniqueNode))
            name = self._next(step, action)
        return action

    def _check_budgets(self, path: Sequence[str], deadline: float) -> None:
        if len(path) >= self.max_steps:
            raise PipelineError(
                f"pipeline {self.name!r} did not end within max_steps {self.max_steps!r} ({_arrows(path)}); "
                "increase max_steps, or let one of these steps lead to 'END'"
            )
        if monotonic() > deadline:
            raise PipelineError(
                f"pipeline {self.name!r} did not end within max_seconds {self.max_seconds!r} ({_arrows(path)}); "
                "increase max_seconds, or remove a slow step"
            )

    def _visit(self, step: Step, shared: dict[str, Any], params: Mapping[str, Any], path: Sequence[str]) -> Any:
        """Run one step on a copy of its node, as a stage of the trace, and return the action."""
        node = copy.copy(step.node)
        node.set_params({**node.params, **params})
        query = shared.get("query")
        with stage(step.name, pipeline=self.name) as report:
            report.documents_in = len(shared["documents"])
            try:
                action = node._run(shared)
            except Exception as error:
                error.add_note(f"in step {step.name!r} of pipeline {self.name!r} ({_arrows(path)})")
                raise
            action = "default" if action is None else action
            report.documents_out = self._count_documents(step, shared)
            report.detail["action"] = action
            if shared.get("query") != query:
                report.detail["query"] = shared.get("query")
        return action

    def _count_documents(self, step: Step, shared: Mapping[str, Any]) -> int:
        documents = shared.get("documents")
        kind = type(documents).__name__
        if isinstance(documents, list):
            strange = [type(one).__name__ for one in documents if not isinstance(one, Document)]
            if not strange:
                return len(documents)
            kind = f"list with a {strange[0]}"
        raise PipelineError(f"{self._title(step)} left a {kind!r} as shared 'documents'; leave a list of Document")

    def _next(self, step: Step, action: Any) -> str:
        if isinstance(action, str) and action in step.on:
            return step.on[action]
        raise PipelineError(
            f"{self._title(step)} returned {action!r}, but its node {type(step.node).__name__} declares the actions "
            f"{listed(step.on)}{did_you_mean(action, step.on)}"
        )

    def _title(self, step: Step) -> str:
        """Name a step in errors, with the place of the code of its node."""
        return f"step {step.name!r} of pipeline {self.name!r}{_place(step.node)}"


def _place(node: BaseNode) -> str:
    """Return file and line of the last method of a custom node that PocketFlow calls."""
    for name in ("post", "exec", "prep"):
        code = getattr(getattr(type(node), name, None), "__code__", None)
        if code is not None and code is not getattr(Node, name).__code__ and not isinstance(node, TechniqueNode):
            return f" ({code.co_filename}:{code.co_firstlineno})"
    return ""


def _arrows(path: Sequence[str], shown: int = 12) -> str:
    """Write the last steps of a run's path."""
    return ("… → " if len(path) > shown else "") + " → ".join(path[-shown:])


class Access:
    """The caller's condition on metadata during a run. It limits access, so no step may remove it.

    A document that a node made itself, such as a page of the web, is marked as one from outside; the condition does not
    apply to it. Such a document has no place in a store and nothing that the condition is about, and no technique of
    the run has returned it.
    """

    def __init__(self, shared: dict[str, Any]) -> None:
        where: Where | None = shared.get("where")
        self.required = normalise(where)
        self.current = shared["where"] = self._copy(self.required)
        self._inside = set(PLACE) | (set() if self.required is None else keys_of(self.required))
        self._found: set[str] = set()
        """Ids of the documents that techniques returned."""

    def uphold(self, step: str, shared: dict[str, Any], *, is_technique: bool) -> None:
        """Add the condition to a ``where`` that a step changed, and check the step's documents.

        Args:
            step: Name of the step in the error.
            shared: The shared mapping of the run.
            is_technique: The step is a technique, whose documents are from a store unless it marks them.

        Raises:
            PipelineError: A document does not meet the condition.
        """
        if is_technique:
            self._found.update(document.id for document in shared["documents"])
        else:
            shared["documents"] = list(map(self._marked, shared["documents"]))
        if self.required is None:
            return
        if shared.get("where") is not self.current:
            where = shared.get("where")
            where = self.required if where is None else both(self.required, normalise(where))
            self.current = shared["where"] = self._copy(where)
        for document in shared["documents"]:
            if not is_outside(document) and not matches(self.required, document.metadata):
                raise PipelineError(
                    f"{step} returned document {document.id!r}, which does not meet where {self.required!r}; "
                    "techniques and nodes must follow the shared 'where'"
                )

    def _marked(self, document: Document) -> Document:
        if document.id in self._found or not self._inside.isdisjoint(document.metadata):
            return document
        return replace(document, metadata={**document.metadata, OUTSIDE: True})

    @staticmethod
    def _copy(condition: Condition | None) -> dict[str, Any] | None:
        """Copy the condition for the steps, which may change their copy."""
        return None if condition is None else copy.deepcopy(dict(condition))
