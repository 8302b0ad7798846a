"""Times as people read them: local, whatever zone they are kept in."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ragistry.utils.wording import local_time


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_times_are_local() -> None:
    assert local_time("2026-04-07T20:15:30+00:00") == "2026-04-08 05:15"
    assert local_time("2026-04-07T20:15:30Z") == "2026-04-08 05:15"
    assert local_time(1_775_592_930.5) == "2026-04-08 05:15"
    assert local_time(0.0) == ""
