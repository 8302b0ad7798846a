"""Time of work that was done earlier and kept: a comparison charges it as if it were done now."""

from __future__ import annotations

from collections.abc import Sequence

from ragistry.types import Stage

CHARGED = "charged_ms"
"""The detail of a trace's stage that holds milliseconds to add to those that the clock shows."""


def charged(stages: Sequence[Stage]) -> float:
    """Milliseconds to add to those of the clock, for work that was done earlier and kept."""
    return sum(float(stage.detail.get(CHARGED, 0.0)) for stage in stages)
