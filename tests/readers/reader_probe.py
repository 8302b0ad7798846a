"""A process that reads hostile files for the tests, and says what that cost it and its worker.

``python -m tests.readers.reader_probe`` answers each line of JSON on its standard input with one on its standard
output: ``{"path", "engine", "limits", "secret"}`` with ``{"kind", "said", "characters", "leaked", "own", "worker"}``.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from ragistry.chunking.chunker import chunk_extracted
from ragistry.errors import RagistryError
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.ingest.zip_folder import members_of
from ragistry.readers import reader_process
from ragistry.readers.extract import extract
from ragistry.readers.extracted import Extracted, ExtractLimits


def peak(pid: int | str = "self") -> int:
    """The most memory that a process has used since `forget_peak`, in bytes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 if "VmHWM:" in status else 0


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def read(request: dict[str, Any]) -> list[Extracted]:
    limits = ExtractLimits(**request["limits"])
    if not request["path"].endswith(".zip"):
        return [extract(request["path"], pdf_engine=request["engine"], limits=limits)]
    reading = ReadOptions(1_000, 0, limits=limits)
    return [member.read(reading)[0] for member in members_of(request["path"], "a.zip").members]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    forget_peak()
    before = peak()
    found: list[Extracted] = []
    kind, said = "text", ""
    try:
        found = read(request)
        if request.get("chunk"):
            for one in found:
                chunk_extracted(one, 1_000, 0)
        said = " ".join(one.text[:200] for one in found)[:300]
    except RagistryError as error:
        kind, said = "refused", str(error)
    except BaseException as error:  # noqa: BLE001 - this is what the tests look for
        kind, said = "raised", f"{type(error).__name__}: {error}"[:300]
    workers = [peak(worker.pid) for worker in reader_process._idle]
    ended = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "kind": kind,
        "said": said,
        "characters": sum(len(one.text) for one in found),
        "metadata": max([len(json.dumps(one.metadata)) for one in found], default=0),
        "leaked": any(request["secret"] in f"{one.text}{one.metadata}{one.warnings}" for one in found),
        "own": peak() - before,
        "worker": max([ended, *workers]),
    }


if __name__ == "__main__":
    for request_line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(request_line))) + "\n")
        sys.stdout.flush()
