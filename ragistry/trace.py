"""Record the stages of a retrieval in a context variable.

A search opens `collect`; code inside it reports through `stage`, `model_call` and `degraded`. Outside a `collect`,
these record nothing and cost almost nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from ragistry.types import Stage


@dataclass(slots=True)
class OpenStage:
    """A running stage; the code inside it fills in its fields."""

    name: str
    depth: int = 0
    ms: float = 0.0
    documents_in: int = 0
    documents_out: int = 0
    model_calls: int = 0
    tokens: int = 0
    detail: dict[str, Any] = field(default_factory=dict)
    degraded: str = ""


@dataclass(slots=True)
class Trace:
    """The stages of one retrieval, in the order of their start, and the reasons of `degraded`."""

    opened: list[OpenStage] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)

    def stages(self) -> tuple[Stage, ...]:
        return tuple([
            Stage(
                one.name, one.ms, one.documents_in, one.documents_out, one.model_calls, one.tokens, one.depth,
                one.detail, one.degraded,
            )
            for one in self.opened
        ])  # fmt: skip


_SDK = "opentelemetry.sdk.trace"
"""Looked up among the loaded modules, never imported: no cost if it is not used."""
_NO_SPAN = nullcontext()
_trace: ContextVar[Trace | None] = ContextVar("ragistry_trace", default=None)
_stage: ContextVar[OpenStage | None] = ContextVar("ragistry_stage", default=None)
_calls: ContextVar[list[int] | None] = ContextVar("ragistry_calls", default=None)
"""The tokens of each model call recorded in the innermost `at_least_one_call`."""


@contextmanager
def collect() -> Iterator[Trace]:
    """Record every stage that runs in the block."""
    trace = Trace()
    token, outer = _trace.set(trace), _stage.set(None)
    try:
        yield trace
    finally:
        _trace.reset(token)
        _stage.reset(outer)


@contextmanager
def stage(name: str, **detail: Any) -> Iterator[OpenStage]:
    """Record the block as one stage of a retrieval; ``detail`` explains its decisions."""
    trace, parent = _trace.get(), _stage.get()
    current = OpenStage(name, depth=0 if parent is None else parent.depth + 1, detail=detail)
    if trace is None:
        yield current
        return
    trace.opened.append(current)
    token = _stage.set(current)
    start = perf_counter()
    try:
        with span(f"ragistry.{name}") if _SDK in sys.modules else _NO_SPAN:
            yield current
    finally:
        current.ms = (perf_counter() - start) * 1000
        _stage.reset(token)


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[None]:
    """Open an OpenTelemetry span around the block if the program has loaded its SDK.

    Spans contain no query, text or error message, because their readers may not be allowed to see these.
    """
    if _SDK not in sys.modules:
        yield
        return
    tracer = sys.modules["opentelemetry.trace"].get_tracer("ragistry")
    options = {"record_exception": False, "set_status_on_exception": False}
    with tracer.start_as_current_span(name, attributes=attributes, **options) as current:
        try:
            yield
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            raise


def model_call(tokens: int = 0) -> None:
    """Record a model call in the current stage, with tokens in and out (0: unknown)."""
    current, calls = _stage.get(), _calls.get()
    if current is not None:
        current.model_calls += 1
        current.tokens += tokens
    if calls is not None:
        calls.append(tokens)


@contextmanager
def at_least_one_call(tokens: Callable[[], int]) -> Iterator[None]:
    """Record a model call after the block, unless code in the block recorded one. Thread-safe.

    ``tokens`` estimates the tokens; it is called only if it is needed, after the block.
    """
    calls: list[int] = []
    outer = _calls.get()
    token = _calls.set(calls)
    try:
        yield
    finally:
        _calls.reset(token)
    if not calls:
        model_call(tokens() if _stage.get() is not None else 0)
    elif outer is not None:
        outer += calls


def degraded(reason: str) -> None:
    """Record that the current stage gave a degraded answer; `reason` says why. A retrieval records it once."""
    current, trace = _stage.get(), _trace.get()
    if current is not None and (trace is None or reason not in trace.reasons):
        if trace is not None:
            trace.reasons.add(reason)
        current.degraded = f"{current.degraded}; {reason}" if current.degraded else reason
