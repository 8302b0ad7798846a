"""``${NAME}`` in a configuration file: an environment variable, so that files need no passwords."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

VARIABLE = re.compile(r"\$\{([^}]*)\}")

Look = Callable[[str, Sequence[str | int]], str]
"""Returns the text for a variable, given its name and the keys of the value that contains it."""


def filled(value: Any, keys: Sequence[str | int], look: Look) -> Any:
    """``value`` with variables replaced in all its texts; ``keys``: its place in the file."""
    if isinstance(value, dict):
        return {key: filled(one, [*keys, key], look) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, [*keys, place], look) for place, one in enumerate(value)]
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(lambda match: look(match[1], keys), value)
