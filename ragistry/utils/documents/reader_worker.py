"""The process that reads binary documents, so that a file that hangs, crashes or needs much memory harms nothing else.

``python -m ragistry.utils.documents.reader_worker`` answers each line of JSON on its standard input with one line on
its standard output. A request is ``{"path", "engine", "pages", "characters", "memory", "bytes", "seconds"}``. For a PDF
the answer is ``{"pages": [text], "unreadable": [page], "pictured": [page], "unmapped", "xfa", "info"}``, for the engine
``office`` the result of `office_reader.read`, and for ``tex`` ``{"text", "metadata", "warning"}``, each with the
``digest`` of the bytes that were read. ``draw`` writes the ``image`` of a ``page``. Any answer may be
``{"error": reason}``; with ``"spoiled"``, this process should not be used again.

The process ends when its standard input ends, even in the middle of a file, and at the latest `GRACE` after the time
limit, because a library may not let other threads run.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import sys
import threading
import unicodedata
from hashlib import sha256
from queue import SimpleQueue
from typing import Any

from ragistry.utils.documents.encoding import decode
from ragistry.utils.documents.extracted import read_at_most
from ragistry.utils.documents.pdf_engines import ENGINES, Pdf, UnreadableFileError, draw, look, rejoin
from ragistry.utils.documents.tex import read_tex

_JUNK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\uffff]|\u00ad(?!\n)")  # of fonts without character maps
_UNMAPPED = re.compile("[\x00\x01\x03-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")  # 2 is a hyphen of pdfium
_LIGATURES = re.compile("[\ufb00-\ufb06]")
_LINE_ENDS = re.compile(r"(?<![ \t])[ \t]++(?=\n)")
OFFICE, TEX, DRAW = "office", "tex", "draw"
LONGEST_INFO = 10_000
"""Maximum characters of a metadata value; `extract` keeps fewer."""
GRACE, LONGEST = 3.0, 1_000_000.0
"""Seconds that the parent has to end this process after the time limit, and the maximum time limit."""
XFA_CHARACTERS = 2_000
"""A file with more text than this has pages besides its XFA form."""
_OUT_OF_MEMORY = "out of memory"  # in other errors of libraries in Rust
_PAGE_BREAK = "\f"  # among the characters that `_JUNK` removes from pages


def main() -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and ends this process
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
    os._exit(0)  # the parent ended, so the answer is not needed


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Read the file; return its content, or why it cannot be read."""
    _limit_memory(request["memory"])
    try:
        data = read_at_most(request["path"], request["bytes"])
        if not data:
            return {"error": "is empty, 0 bytes; get the file again"}
        if len(data) > request["bytes"]:  # it grows
            return {"error": f"has more than {request['bytes']:,} bytes, the limit; raise limits.megabytes"}
        if request["engine"] == DRAW:
            draw(data, request["page"] - 1, request["image"])
            return {"drawn": request["image"]}
        return _found(data, request) | {"digest": sha256(data).hexdigest()}
    except UnreadableFileError as refusal:
        return {"error": str(refusal)}
    except MemoryError:
        return _needs_memory(request)
    except Exception as error:  # noqa: BLE001 - for a damaged file, pypdf may raise any error, which is reported here
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        if _OUT_OF_MEMORY in reason:
            return _needs_memory(request)
        remedy = "repair it: qpdf in.pdf out.pdf" if request["engine"] in ENGINES else "save it again in its program"
        return {"error": f"cannot be read ({reason[:200]}); {remedy}", "spoiled": True}


def _found(data: bytes, request: dict[str, Any]) -> dict[str, Any]:
    if request["engine"] == OFFICE:
        return _within_limits(_read_office(data, request["path"]), request)
    if request["engine"] == TEX:
        return _within_limits(_read_tex(data), request)
    return _read(ENGINES[request["engine"]](data), data, request)


def _needs_memory(request: dict[str, Any]) -> dict[str, Any]:
    return {"error": f"needs more memory than {request['memory']:,} bytes; raise limits.memory", "spoiled": True}


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core file after a crash
    if sys.platform == "linux":  # other systems do not enforce the limit
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size if most == resource.RLIM_INFINITY else min(size, most), most))


def _read_office(data: bytes, path: str) -> dict[str, Any]:
    from ragistry.utils.documents.office_reader import read

    return read(data, path)


def _read_tex(data: bytes) -> dict[str, Any]:
    decoded = decode(data)
    text, metadata = read_tex(decoded.text)
    return {"text": text, "metadata": metadata, "warning": decoded.warning}


def _within_limits(found: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    if len(found["text"]) > request["characters"]:
        limit = f"{request['characters']:,}"
        raise UnreadableFileError(f"has more than {limit} characters, the limit; split it or raise limits.characters")
    return found


def _read(pdf: Pdf, data: bytes, request: dict[str, Any]) -> dict[str, Any]:
    if pdf.pages > request["pages"]:
        raise UnreadableFileError(
            f"has {pdf.pages:,} pages, more than the limit of {request['pages']:,}; split it or raise limits.pages"
        )
    texts, unreadable, characters, unmapped = [], [], 0, 0
    for index in range(pdf.pages):
        text = _page_text(pdf, index)
        characters += len(text or "")
        if characters > request["characters"]:
            limit = f"{request['characters']:,}"
            raise UnreadableFileError(
                f"has more than {limit} characters, the limit; split it or raise limits.characters"
            )
        if text is None:
            unreadable.append(index + 1)
        unmapped += len(_UNMAPPED.findall(text or ""))
        texts.append(clean(text or ""))
    pages = [page.strip() for page in rejoin(_PAGE_BREAK.join(texts)).split(_PAGE_BREAK)] if texts else []
    empty = [index for index, page in enumerate(pages) if not page]
    suspicious = empty or sum(map(len, pages)) < XFA_CHARACTERS
    pictured, xfa = look(data, empty) if suspicious else ([], False)
    found = {"pages": pages, "unreadable": unreadable, "pictured": pictured, "unmapped": unmapped, "xfa": xfa}
    return found | {"info": {key: value[:LONGEST_INFO] for key, value in pdf.info.items()}}


def _page_text(pdf: Pdf, index: int) -> str | None:
    try:
        return pdf.text(index)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a damaged page is reported, and the others are read
        return None


def clean(text: str) -> str:
    """Clean the text of a page: newlines ``\\n``, no control characters or blanks at line ends, no ligatures."""
    text = _JUNK.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _LIGATURES.sub(lambda ligature: unicodedata.normalize("NFKC", ligature[0]), text)
    return _LINE_ENDS.sub("", text)


if __name__ == "__main__":
    main()
