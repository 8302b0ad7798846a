"""Numbers of a configuration: true is none, though Python counts it as 1."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"must be a number, got {value!r}")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Number = Annotated[float, BeforeValidator(_no_truth)]
WholeOrNone = Annotated[int | None, BeforeValidator(_no_truth)]
NumberOrNone = Annotated[float | None, BeforeValidator(_no_truth)]
"""With None outside, so that bounds of the field get into its JSON Schema."""
