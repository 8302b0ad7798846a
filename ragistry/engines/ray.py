"""Work on the workers of a Ray cluster.

Moritz et al. (2018), "Ray: A Distributed Framework for Emerging AI Applications". Each group of items is a task. A
worker process keeps what it loaded, such as a model, for later tasks. Retries are done here instead of in Ray, so that
an item that kills its process is dropped after two attempts alone.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from ragistry import __version__
from ragistry.errors import (
    ConfigError,
    EngineError,
    ModelConnectionError,
    ModelNotFoundError,
    RagistryError,
    WorkerLostError,
)
from ragistry.protocols import Item, Result
from ragistry.utils.installation import install_command

TRIES = 2
"""Number of attempts for a group whose process dies, before its items are tried one by one."""
AHEAD = 2
"""Number of submitted groups per CPU of the cluster: one running, one waiting."""
CONNECT_SECONDS = 5.0
OBJECT_STORE_BYTES = 200_000_000
"""Shared memory of a new cluster in bytes; submitted groups are small."""


class RayEngine:
    """Meets `Engine`. Close it, or use it in a ``with`` block.

    ``address``: ``HOST:PORT`` of a cluster, ``auto`` for the one on this machine, None to start one that ends with the
    engine. A program that has called ``ray.init`` keeps its connection. Every node needs the same version of Ragistry,
    the model, and the packages that techniques import. Raises `ConfigError` if Ray is not installed, `EngineError` if
    the cluster cannot be reached.
    """

    def __init__(self, address: str | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise ConfigError(f"the engine 'ray' needs {error.name!r}; run: {install_command('ray')}") from error
        self._ray: Any = ray
        self._owns = not ray.is_initialized()
        if self._owns:
            _connect(ray, address)
        # Ray retries without limit if a node is out of memory
        self._run = ray.remote(max_retries=0, num_cpus=1)(_run)

    def map(
        self, work: Callable[[list[Item]], list[Result]], groups: Iterable[list[Item]]
    ) -> Iterator[list[Result | WorkerLostError]]:
        """As `Engine.map`. Raises `EngineError` also for work that cannot be pickled."""
        shared = self._ray.put(self._pickled(work))
        waiting: deque[tuple[list[Item], Any]] = deque()
        most = AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        try:
            for group in groups:
                waiting.append((group, self._start(shared, group)))
                if len(waiting) >= most:
                    yield self._outcome(shared, *waiting.popleft())
            while waiting:
                yield self._outcome(shared, *waiting.popleft())
        finally:
            if self._ray.is_initialized():  # not after `close`: Ray would start a cluster to cancel a task
                for _, task in waiting:
                    with suppress(self._ray.exceptions.RayError):  # the cluster may be gone
                        self._ray.cancel(task)

    def close(self) -> None:
        """Leave the cluster, and stop it if it was started here."""
        if self._owns:
            self._ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pickled(self, thing: Any) -> bytes:
        try:
            pickled: bytes = self._ray.cloudpickle.dumps(thing)
        except Exception as error:  # whatever a `__reduce__` raises
            said = " ".join(str(error).split())[:200]
            raise EngineError(f"{thing!r:.100} cannot be sent to a worker: {said}; use the engine 'local'") from error
        return pickled

    def _start(self, shared: Any, group: list[Any]) -> Any:
        return self._run.remote(__version__, str(Path.cwd()), shared, self._pickled(group))

    def _outcome(self, shared: Any, group: list[Any], task: Any) -> list[Any]:
        exceptions = self._ray.exceptions
        died = (
            exceptions.WorkerCrashedError,
            exceptions.OutOfMemoryError,
            exceptions.NodeDiedError,
            exceptions.ObjectLostError,  # the result was on a node that died
        )
        for left in reversed(range(TRIES)):
            try:
                outcome = self._ray.get(task)
            except died as error:
                if left:
                    task = self._start(shared, group)
                elif len(group) == 1:
                    return [WorkerLostError(f"the worker process died {TRIES} times ({type(error).__name__})")]
                else:
                    return [self._outcome(shared, [item], self._start(shared, [item]))[0] for item in group]
            except exceptions.RayTaskError as error:
                if isinstance(error, ImportError):
                    said = f"a worker cannot import what it needs: {str(error).strip().splitlines()[-1]}"
                    raise EngineError(f"{said}; install ragistry {__version__} on every node") from error
                raise
            except exceptions.RayError as error:
                raise EngineError(f"the Ray cluster failed: {_first_line(error)}; check its nodes") from error
            else:
                break
        if isinstance(outcome, RagistryError):
            raise outcome
        results: list[Any] = outcome
        return results


def _connect(ray: Any, address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    here = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    with _own_signals():
        try:
            _check_answers(address)
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **({} if address else here))
        except (OSError, RuntimeError, ValueError) as error:
            place = f"the Ray cluster {address!r}" if address else "a Ray cluster on this machine"
            raise EngineError(
                f"{place} cannot be used: {_first_line(error)}; check the address, that `ray status` shows the "
                "cluster, and that Python and Ray are of the same version on both sides"
            ) from error


def _check_answers(address: str | None) -> None:
    """Raise `OSError` if nothing listens; Ray itself would retry for many minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _run(version: str, folder: str, work: bytes, group: bytes) -> Any:
    """On a worker: the results of a group, or the error. Data pickled by another version is not opened."""
    import ray

    if version != __version__:
        return EngineError(
            f"node {_node()} has ragistry {__version__}, and this program {version}; install the same version on both"
        )
    with suppress(OSError):  # a missing folder: its files are missing too
        os.chdir(folder)
    try:
        return ray.cloudpickle.loads(work)(ray.cloudpickle.loads(group))
    except (ModelConnectionError, ModelNotFoundError) as error:
        return type(error)(f"on node {_node()}: {error}")
    except RagistryError as error:
        return error


def _node() -> str:
    import ray

    return f"{socket.gethostname()} ({ray.get_runtime_context().get_node_id()[:8]})"
