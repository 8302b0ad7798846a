"""The package, its interface, its tests and its manual stay within the ceilings of ``size.txt``."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests import size

README = (size.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_nothing_grows_past_its_ceiling() -> None:
    totals, rooms = size.counts(without=size.RECORDED)
    found = list(size.problems(totals | rooms, size.read_ceilings(), totals))
    paragraph = re.search(r"^## Size\n\n(.+?)\n\n", README, flags=re.DOTALL | re.MULTILINE)
    assert paragraph is not None
    assert not found, "\n".join([*found, "", paragraph[1]])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 1\n", 3),
        ('"""Docstring."""\nx = 1  # comment\n', 3),
        ("x = f'{a!r:>{w}} and {b}' + f\"{f'{c}'}\"\n", 5),
        ("def f(\n    a,\n):\n    return a\n", 9),
    ],
)
def test_tokens_are_those_of_code(code: str, expected: int) -> None:
    assert size.tokens(code) == expected


def test_a_room_above_its_ceiling_and_a_total_that_lags_are_named() -> None:
    found = list(
        size.problems(
            {"package": 1000, "ragistry/web": 700, "tests": 9},
            {"package": 1100, "ragistry/web": 600, "tests": 1},
            ["package"],
        )
    )
    assert found == [
        "the ceiling of package is over 2% above its 1,000 tokens; run `make size`",
        "ragistry/web is 100 tokens above its ceiling of 600",
    ]


@pytest.mark.parametrize(
    ("count", "ceiling", "written", "code"), [(100, 101, 101, 0), (100, 200, 100, 0), (100, 99, 99, 1)]
)
def test_make_size_lowers_totals_and_never_raises_them(
    count: int, ceiling: int, written: int, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: size.Path
) -> None:
    monkeypatch.setattr(size, "FILE", tmp_path / "size.txt")
    monkeypatch.setattr(size, "counts", _counts(ceiling))
    size.FILE.touch()
    size.main()
    monkeypatch.setattr(size, "counts", _counts(count))
    assert size.main() == code
    assert size.read_ceilings() == {"package": written, "ragistry/web": count}


def _counts(count: int) -> Callable[[], tuple[dict[str, int], dict[str, int]]]:
    return lambda: ({"package": count}, {"ragistry/web": count})
