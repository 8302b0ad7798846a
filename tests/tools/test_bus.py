"""The bus that stays in the process."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.tools.bus import InProcessBus


def test_messages_go_to_the_subscribers_of_their_subject() -> None:
    bus = InProcessBus()
    first: list[Any] = []
    second: list[Any] = []
    bus.subscribe("a", first.append)
    leave = bus.subscribe("a", second.append)
    bus.publish("a", {"n": 1})
    bus.publish("b", {"n": 2})
    leave()
    leave()
    bus.publish("a", {"n": 3})
    assert first == [{"n": 1}, {"n": 3}]
    assert second == [{"n": 1}]


def test_a_receiver_that_fails_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    bus = InProcessBus()
    heard: list[Any] = []
    bus.subscribe("a", lambda message: message["missing"])
    bus.subscribe("a", heard.append)
    bus.publish("a", {"n": 1})
    assert heard == [{"n": 1}]
    assert "a receiver of a failed" in caplog.text
