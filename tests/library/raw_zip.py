"""Write zip files with the bytes of names that other programs write."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path


def raw_zip(path: Path, members: Sequence[tuple[bytes, bytes]], *, flags: int = 0, extra: bytes = b"") -> Path:
    """Write members, each a name and its content, stored."""
    body, directory = b"", b""
    for name, data in members:
        sizes = struct.pack("<3L2H", zlib.crc32(data), len(data), len(data), len(name), len(extra))
        start = len(body)
        body += struct.pack("<4s5H", b"PK\3\4", 20, flags, 0, 0, 33) + sizes + name + extra + data
        head = struct.pack("<4s6H", b"PK\1\2", 20, 20, flags, 0, 0, 33)
        directory += head + sizes + struct.pack("<3H2L", 0, 0, 0, 0, start) + name + extra
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path
