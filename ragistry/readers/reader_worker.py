"""The process that reads binary documents, so that a file that hangs, crashes or needs much memory harms nothing else.

``python -m ragistry.readers.reader_worker`` answers each line of JSON on its standard input with one line on
its standard output. A request is ``{"path", "engine", "pages", "characters", "memory", "bytes", "seconds"}``. For a PDF
the answer is the result of `pdf_reader.read`, for the engine ``office`` that of `blocks.answer_of`, each with the
``digest`` of the bytes that were read. ``draw`` writes the ``image`` of a ``page``, gray or with ``marks``.
Any answer may be ``{"error": reason}``; with ``"spoiled"``, this process should not be used again.

The process ends when its standard input ends, even in the middle of a file, and at the latest `GRACE` after the time
limit, because a library may not let other threads run.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from hashlib import sha256
from queue import SimpleQueue
from typing import Any

from ragistry.readers.blocks import (
    Block,
    Place,
    ReadDocument,
    UnreadableFileError,
    answer_of,
    check_characters,
    longest_text,
    reason_of,
    with_notes,
)  # fmt: skip
from ragistry.readers.encoding import UndecodableError
from ragistry.readers.extracted import read_at_most

OFFICE, DRAW = "office", "draw"
GRACE, LONGEST = 3.0, 1_000_000.0
"""Seconds after the time limit in which the parent usually ends this process, and most seconds of all."""


def main() -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a library that prints must not write into an answer
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        request = json.loads(requests.get())
        faulthandler.dump_traceback_later(min(request["seconds"] + GRACE, LONGEST), exit=True)
        line = json.dumps(answer(request), ensure_ascii=False).encode(errors="surrogatepass")
        faulthandler.cancel_dump_traceback_later()
        answers.write(line + b"\n")
        answers.flush()


def _listen(requests: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)  # the parent is gone: the result of the main thread is not needed


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the file, or the reason why it cannot be read."""
    _limit_memory(request["memory"])
    try:
        data = read_at_most(request["path"], request["bytes"])
        if not data:
            return {"error": "is empty, 0 bytes; get the file again"}
        if len(data) > request["bytes"]:  # it grows
            return {"error": f"has more than {request['bytes']:,} bytes, the limit; raise limits.megabytes"}
        if request["engine"] == DRAW:
            _draw(data, request)
            return {"drawn": request["image"]}
        return _found(data, request) | {"digest": sha256(data).hexdigest()}
    except UnreadableFileError as refusal:
        return {"error": str(refusal)}
    except UndecodableError as error:
        return {"error": f"is not a text file: {error}"}
    except MemoryError:
        return {"error": f"needs more memory than {request['memory']:,} bytes; raise limits.memory", "spoiled": True}
    except Exception as error:  # noqa: BLE001 - on a damaged file, pypdf raises anything; this is where it is reported
        is_pdf = request["engine"] not in (OFFICE, DRAW)
        remedy = "repair it: qpdf in.pdf out.pdf" if is_pdf else "save it again in its program"
        return {"error": f"cannot be read ({reason_of(error)}); {remedy}", "spoiled": True}


def _draw(data: bytes, request: dict[str, Any]) -> None:
    from ragistry.readers.pdf_engines import draw_gray, draw_marked

    if "marks" in request:
        draw_marked(data, request["page"] - 1, request["image"], request["marks"])
    else:
        draw_gray(data, request["page"] - 1, request["image"])


def _found(data: bytes, request: dict[str, Any]) -> dict[str, Any]:
    if request["engine"] == OFFICE:
        found = _bounded(_read_office(data, request), len(data))
        check_characters(len(found["text"]), request["characters"])
        return found
    from ragistry.readers import pdf_reader  # with the library for PDFs, which other documents do not need

    return pdf_reader.read(data, request["engine"], request)


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
    if sys.platform == "linux":  # elsewhere the limit can be set and is not kept
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size if most == resource.RLIM_INFINITY else min(size, most), most))


def _read_office(data: bytes, request: dict[str, Any]) -> dict[str, Any]:
    from ragistry.readers.by_format import read_document
    from ragistry.readers.formats import AddedReader

    def read_pdf(attached: bytes) -> ReadDocument:
        from ragistry.readers import pdf_reader

        found = pdf_reader.read(attached, "pypdfium2", request)
        pages = enumerate(with_notes(found["pages"], found["notes"]), 1)
        return ReadDocument([Block(page, Place(page=number)) for number, page in pages if page], found["info"])

    added = {suffix: AddedReader(**reader) for suffix, reader in request["readers"].items()}
    return answer_of(read_document(data, request["path"], read_pdf, added))


def _bounded(found: dict[str, Any], size: int) -> dict[str, Any]:
    """Cut a text that is much longer than its file."""
    text, most = found["text"], longest_text(size)
    if len(text) <= most:
        return found
    end = text.rfind("\n", most // 2, most) + 1 or most
    places = [(start, place) for start, place in found["places"] if start < end]
    last = places[-1][1] if places else {}
    where = next(
        (f", beginning in {last[name]!r}" for name in ("part", "sheet", "chapter", "page") if name in last), ""
    )
    cut = f"{len(text) - end:,} of {len(text):,} characters from a file of {size:,} bytes are left out{where}"
    unread = [*found["unread"], f"{cut}; they repeat others: save what you need without repetitions"]
    return found | {"text": text[:end].rstrip(), "places": places, "unread": unread}


if __name__ == "__main__":
    main()
