"""Values in messages: one line, and short."""

from __future__ import annotations

import numpy as np
import pytest

from ragistry.utils.wording import LONGEST, one_line, shown

NESTED: list = []
for _ in range(5_000):
    NESTED = [NESTED]


@pytest.mark.parametrize("value", ["x" * 1_000_000, np.eye(40), "a\nb", NESTED, 10**5_000], ids=lambda v: f"{type(v)}")
def test_a_value_stands_on_one_line_and_is_short(value):
    assert "\n" not in shown(value)
    assert len(shown(value)) <= LONGEST + 1


def test_a_short_value_is_shown_as_it_is():
    assert shown("a  b\n") == r"'a  b\n'"
    assert shown("abcdef", 3) == "'ab…"


def test_somebody_elses_text_becomes_one_line():
    assert one_line("first line\n  second") == "first line second"
