"""Run methods in threads of a pool, for programs with an event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

P = ParamSpec("P")
Result = TypeVar("Result")
THREADS = 8
"""Maximum number of calls at a time in this process; further ones wait."""


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # not at the top: most programs do without

    return ThreadPoolExecutor(THREADS, "ragistry")


def _submit(call: Callable[[], Result]) -> Future[Result]:
    return _pool().submit(copy_context().run, call)


def in_pool(
    method: Callable[Concatenate[Any, P], Result],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, Result]]:
    """Make an asynchronous method of one that computes.

    A cancelled call that waits for a thread does not start. A running one continues without its caller.
    """

    @wraps(method)
    async def run(self: Any, /, *args: P.args, **options: P.kwargs) -> Result:
        from asyncio import wrap_future

        return await wrap_future(_submit(partial(method, self, *args, **options)))

    run.__name__, run.__doc__ = f"a{method.__name__}", f"Run `{method.__name__}` in a thread of a pool."
    return run


async def run_cancellable(
    call: Callable[[], Result], cancel: Callable[[], object], ended: type[BaseException]
) -> Result:
    """Run a call in a thread of the pool. If the task is cancelled, end the call first.

    Args:
        call: The call.
        cancel: Makes the call end soon.
        ended: What the call then raises.
    """
    import asyncio

    running = asyncio.wrap_future(_submit(call))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel()
        with suppress(ended):
            await running
        raise
