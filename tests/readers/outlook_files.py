"""Mails of Outlook, written as compound files by hand."""

from __future__ import annotations

import struct
from collections.abc import Mapping

Folder = Mapping[str, "bytes | Folder"]
SECTOR, FREE, END = 512, 0xFFFFFFFF, 0xFFFFFFFE


def compound_file(root: Folder) -> bytes:
    """A compound file of these folders and streams, each of less than 4,096 bytes."""
    entries: list[tuple[str, int, int, int, bytes]] = []  # name, kind, sibling, child, data

    def add(name: str, content: bytes | Folder) -> int:
        place = len(entries)
        entries.append((name, 2, FREE, FREE, content if isinstance(content, bytes) else b""))
        if not isinstance(content, bytes):
            child = FREE
            for part, value in reversed(list(content.items())):
                sibling, child = child, add(part, value)
                entries[child] = (*entries[child][:2], sibling, *entries[child][3:])
            entries[place] = (name, 1 if place else 5, FREE, child, b"")
        return place

    add("Root Entry", root)
    small, small_table, starts = b"", list[int](), list[int]()
    for *_, data in entries:
        count = -(-len(data) // 64)
        starts.append(len(small_table) if data else END)
        small_table += [*range(len(small_table) + 1, len(small_table) + count), END] if data else []
        small += data.ljust(count * 64, b"\0")
    table: list[int] = []
    sectors = b""

    def store(data: bytes) -> int:
        nonlocal sectors
        count, start = -(-len(data) // SECTOR), len(table)
        table.extend([*range(start + 1, start + count), END])
        sectors += data.ljust(count * SECTOR, b"\0")
        return start

    first_small = store(small)
    first_table = store(struct.pack(f"<{len(small_table)}L", *small_table).ljust(SECTOR, b"\xff"))
    directory = b""
    for place, ((name, kind, sibling, child, data), begin) in enumerate(zip(entries, starts, strict=True)):
        start, size = (begin, len(data)) if place else (first_small, len(small))
        coded = name.encode("utf-16-le")
        directory += coded.ljust(64, b"\0") + struct.pack("<HBB", len(coded) + 2, kind, 1)
        directory += struct.pack("<LLL", FREE, sibling, child) + bytes(36) + struct.pack("<LQ", start, size)
    first = store(directory)
    last = len(table)
    sectors += struct.pack(f"<{last + 1}L", *table, 0xFFFFFFFD).ljust(SECTOR, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<LLLLLLLLL", 0, 1, first, 0, 4096, first_table, 1, END, 0)
    return head + struct.pack("<L", last).ljust(436, b"\xff") + sectors


def outlook_folder(
    texts: Mapping[int, bytes | str], numbers: Mapping[int, int], header: int = 32, **parts: Folder
) -> Folder:
    """Properties: bytes are texts of 8 bits, the HTML body is binary, text is UTF-16."""
    entries = b"".join(struct.pack("<HHLQ", 0x0003, tag, 0, value) for tag, value in numbers.items())
    streams: dict[str, bytes | Folder] = {}
    for tag, value in texts.items():
        kind = 0x1F if isinstance(value, str) else 0x102 if tag in (0x1013, 0x3701, 0x1009) else 0x1E
        data = value.encode("utf-16-le") if isinstance(value, str) else value
        entries += struct.pack("<HHLQ", kind, tag, 0, len(data))
        streams[f"__substg1.0_{tag:04X}{kind:04X}"] = data
    folder: dict[str, bytes | Folder] = {"__properties_version1.0": bytes(header) + entries, **streams}
    return folder | {f"__{name}_version1.0_#00000000": part for name, part in parts.items()}
