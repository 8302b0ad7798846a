"""What this process may do in a folder."""

from __future__ import annotations

import os
from pathlib import Path


def is_writable(folder: Path) -> bool:
    """Whether it may make files there."""
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
