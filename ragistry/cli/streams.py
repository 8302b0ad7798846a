"""Standard output and error that tolerate closed pipes, full disks, and characters a terminal cannot show."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from ragistry.errors import RagistryError


class Stream(io.FileIO):
    """A stream that discards output once it cannot be written.

    If the reader closes the pipe, as ``head`` does, the command continues silently and ends with its own exit code.
    Raises `RagistryError`, once, if the system refuses to write.
    """

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if not size:  # the caller only asks whether the stream takes bytes
            return 0
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                return size
            raise RagistryError(
                f"cannot write the output: {error.strerror}; make room, or write it elsewhere"
            ) from error


def make_robust() -> None:
    """Replace standard output and error by `Stream`, unless a program or a Windows console provides its own."""
    if sys.stdout is sys.__stdout__ and (stdout := _robust(sys.stdout)):
        sys.stdout = stdout
    if sys.stderr is sys.__stderr__ and (stderr := _robust(sys.stderr)):
        sys.stderr = stderr


def _robust(stream: Any) -> io.TextIOWrapper | None:
    """Return a `Stream` for a stream of Python; it writes characters outside its encoding as ``\\xe9``."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # with PYTHONUNBUFFERED there is no buffer
    if type(raw) is not io.FileIO:  # a Windows console has its own class, which always has a reader
        return None
    robust = Stream(raw.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        robust if buffer is raw else io.BufferedWriter(robust),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
