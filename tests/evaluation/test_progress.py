"""Progress in a line that changes, and in lines where none can."""

from __future__ import annotations

from io import StringIO
from threading import Event

import pytest

from ragistry.evaluation import progress
from ragistry.evaluation.progress import ProgressLines, shown_progress
from ragistry.utils.wording import duration


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    seconds = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: seconds[0])
    return seconds


def test_line_every_ten_seconds_and_an_estimate_at_once(clock):
    show = ProgressLines(stream := StringIO())
    for second in range(25):
        clock[0] = 100 + second
        show("asking", second, 25)
    show("embedding 3 chunks, about 5 s", 0, 3)
    show("embedding 3 chunks, about 5 s", 1, 3)
    show("asking\nagain", 0, 3)
    assert stream.getvalue().splitlines() == [
        "asking: 10 of 25", "asking: 20 of 25", "embedding 3 chunks, about 5 s: 0 of 3",
    ]  # fmt: skip


def test_line_changes_in_a_terminal_and_is_removed_at_the_end(clock):
    show = ProgressLines(stream := StringIO(), changing=True)
    show("asking", 0, 1_000)
    show("asking", 1, 1_000)  # too soon
    clock[0] += 1
    show("asking", 999, 1_000)
    show("asking", 1_000, 1_000)
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().split("\r")[1:3] == ["asking: 0 of 1,000", "asking: 999 of 1,000"]
    assert stream.getvalue().endswith(f"\r{' ' * len('asking: 1,000 of 1,000')}\r")


def test_progress_is_shown_unless_it_is_refused(capsys):
    def own(activity: str, done: int, total: int) -> None: ...

    assert [shown_progress(value) for value in (None, False, own)] == [None, None, own]
    show = shown_progress(True)
    assert show is not None
    show("embedding, about 1 s", 0, 1)
    assert capsys.readouterr().err == "embedding, about 1 s: 0 of 1\n"


def test_lines_are_repeated_while_nothing_advances(monkeypatch, capsys):
    class Stream(StringIO):
        def flush(self) -> None:
            enough.set() if self.getvalue().count("\n") == 5 else None

    enough = Event()
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr("sys.stderr", stream := Stream())
    with progress.repeated_lines() as show:
        assert enough.wait(60)
        show("tea.md", 3, 1_000)
        show("", 1_000, 1_000)
    lines = stream.getvalue().splitlines()
    assert lines[:5] == ["preparing"] * 5
    assert set(lines) <= {"preparing", "tea.md: 3 of 1,000", "1,000 of 1,000"}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (40, "40 s"), (89, "89 s"), (281, "5 min"), (9000, "2.5 h")]
)
def test_durations_are_rough(seconds, text):
    assert duration(seconds) == text
