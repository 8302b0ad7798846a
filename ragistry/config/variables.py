"""``${NAME}`` in a configuration file: the variable of that name, so that no password stands in the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

VARIABLE = re.compile(r"\$\{([^}]*)\}")

Look = Callable[[str, Sequence[str | int]], str]
"""Given the name of a variable and the keys of the value that it stands in, returns the text to put there."""


def filled(value: Any, keys: Sequence[str | int], look: Look) -> Any:
    """``value`` with the variables in its texts, at whatever depth, replaced; ``keys``: where it stands in the file."""
    if isinstance(value, dict):
        return {key: filled(one, [*keys, key], look) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, [*keys, place], look) for place, one in enumerate(value)]
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(lambda match: look(match[1], keys), value)
