"""One reading for every window, and what the library holds as it is read for them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ragistry.errors import StoreError
from ragistry.web.polling import SHARE, PolledValue
from tests.web.loops import run


class Source:
    """Something to read that tells how often it was."""

    def __init__(self) -> None:
        self.content: list[str] | StoreError = ["first"]
        self.readings = 0
        self.go_on = threading.Event()
        self.go_on.set()

    def read(self) -> list[str]:
        self.readings += 1
        self.go_on.wait(10)
        if isinstance(self.content, StoreError):
            raise self.content
        return list(self.content)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def shared(source: Source) -> PolledValue[list[str]]:
    return PolledValue(source.read)


def test_many_windows_share_one_read_and_a_fresh_read_includes_earlier_writes(
    source: Source, shared: PolledValue[list[str]]
) -> None:
    async def windows() -> None:
        source.go_on.clear()
        reading = [asyncio.create_task(shared.refresh()) for _ in range(20)]
        while not source.readings:
            await asyncio.sleep(0.001)
        source.content = ["written meanwhile"]
        wrote = asyncio.create_task(shared.refresh(fresh=True))
        await asyncio.sleep(0.01)
        source.go_on.set()
        await asyncio.gather(*reading, wrote)

    run(windows())
    assert (source.readings, shared.value) == (2, ["written meanwhile"])


def test_value_stays_if_it_is_equal_or_a_read_fails(source: Source, shared: PolledValue[list[str]]) -> None:
    run(shared.refresh())
    before = shared.value
    run(shared.refresh(fresh=True))
    assert source.readings == 2
    assert shared.value is before
    source.content = StoreError("the store is away; start it")
    run(shared.refresh(fresh=True))
    assert (shared.value, shared.trouble) == (["first"], "the store is away; start it")
    source.content = ["back"]
    run(shared.refresh(fresh=True))
    assert (shared.value, shared.trouble) == (["back"], "")


def test_slow_read_is_followed_by_a_longer_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    readings = []
    monkeypatch.setattr("ragistry.web.polling.monotonic", lambda: now)

    def read() -> list[str]:
        nonlocal now
        readings.append(now)
        now += 2.0
        return []

    shared = PolledValue(read)
    run(shared.refresh())
    for after in (2.1, SHARE * 2.0 - 0.1):
        now = 100.0 + after
        run(shared.refresh())
    assert readings == [100.0]
    now = 100.0 + SHARE * 2.0 + 0.1
    run(shared.refresh())
    assert len(readings) == 2


def test_next_window_reads_after_a_cancelled_read(source: Source, shared: PolledValue[list[str]]) -> None:
    async def windows() -> None:
        source.go_on.clear()
        leaving = asyncio.create_task(shared.refresh())
        while not source.readings:
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(shared.refresh())
        await asyncio.sleep(0)
        leaving.cancel()
        source.go_on.set()
        await waiting

    run(windows())
    assert (source.readings, shared.value) == (2, ["first"])
