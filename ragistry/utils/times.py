"""Times as people read them."""

from __future__ import annotations

from datetime import datetime


def local_time(moment: float | str) -> str:
    """``2026-11-23 21:15``, local: of seconds since 1970, 0 for an unknown time, or of ISO 8601 with its zone."""
    if not moment:
        return ""
    read = datetime.fromisoformat(moment) if isinstance(moment, str) else datetime.fromtimestamp(moment)
    return f"{read.astimezone():%Y-%m-%d %H:%M}"
