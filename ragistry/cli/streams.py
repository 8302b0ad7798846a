"""Standard output and error: readers may go away, disks may be full, and no character is too much for a terminal."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from ragistry.errors import RagistryError


class Stream(io.FileIO):
    """A stream that leads to nowhere once it cannot be written to.

    A reader that goes away, such as ``head``, changes nothing else: the command goes on in silence, and ends with the
    exit code that is its own. Raises `RagistryError`, once, where the system takes no more.
    """

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if not size:  # so it is asked whether the stream takes bytes, and an answer is no failure of the output
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
    """Let standard output and error be such streams, where they are what Python made of files, pipes and terminals."""
    if sys.stdout is sys.__stdout__ and (stdout := _robust(sys.stdout)):
        sys.stdout = stdout
    if sys.stderr is sys.__stderr__ and (stderr := _robust(sys.stderr)):
        sys.stderr = stderr


def _robust(stream: Any) -> io.TextIOWrapper | None:
    """The stream anew; what its encoding has no character for is written as ``\\xe9``."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # with PYTHONUNBUFFERED there is no buffer between
    if type(raw) is not io.FileIO:  # a console of Windows has its own kind, which is never without a reader
        return None
    robust = Stream(raw.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        robust if buffer is raw else io.BufferedWriter(robust),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
