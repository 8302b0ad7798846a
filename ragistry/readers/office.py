"""Office documents, books, web pages, mails, notebooks and LaTeX: their text as Markdown.

Documents in the old formats of Office are converted by LibreOffice, if it is installed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragistry.errors import ConfigError, ExtractionError, UnsupportedFormatError
from ragistry.readers.blocks import REPAIR, Place, words_of
from ragistry.readers.extracted import Extracted, ExtractLimits, are_many, read_at_most
from ragistry.readers.formats import CONVERTED, INSTALL_LIBREOFFICE, added_readers, libreoffice, suffix_of
from ragistry.readers.pdf import describe
from ragistry.readers.reader_process import read_in_worker, use_versions
from ragistry.utils.wording import numbered


def read_office(path: str, limits: ExtractLimits) -> Extracted:
    """Return a document as Markdown: headings, lists, tables, code; slides and sheets have a heading each.

    Raises:
        ExtractionError: The file is broken, encrypted, or over a limit.
    """
    readers = added_readers(suffix_of(path))
    with suppress(ConfigError):  # the worker reports it
        use_versions({reader: reader.version() for reader in readers.values()})
    sent = {suffix: asdict(reader) for suffix, reader in readers.items()}
    answer = read_in_worker(path, "office", limits, REPAIR, readers=sent)
    text: str = answer["text"]
    metadata = describe(answer["info"], subject="subject")
    warnings = list(answer["warnings"])
    if not text.strip():
        warnings.append("the document is empty: it has no text to search")
    lost = (*answer["unread"], *_lost(answer["lost"], text))
    places = tuple((int(start), Place(**values)) for start, values in answer["places"])
    return Extracted(
        text,
        path,
        "markdown",
        metadata=metadata,
        warnings=(*warnings, *lost),
        lost=lost,
        digest=answer["digest"],
        places=places,
    )


def read_old(path: str, limits: ExtractLimits) -> Extracted:
    """Convert a document to its present format, and read that.

    Raises:
        UnsupportedFormatError: LibreOffice is not installed.
        ExtractionError: It cannot convert the file within ``limits.seconds``, or the result is over a limit.
    """
    suffix = Path(path).suffix.lower()
    target = CONVERTED[suffix]
    if not libreoffice():
        raise UnsupportedFormatError(
            f"{path!r} has the old format {suffix!r}; {INSTALL_LIBREOFFICE}, or save it as {target}"
        )
    data = read_at_most(path, int(limits.bytes))
    with TemporaryDirectory(prefix="ragistry-") as name:
        folder = Path(name)
        (folder / f"source{suffix}").write_bytes(data)
        profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
        command = [
            libreoffice(), "--headless", "--norestore", profile,
            "--convert-to", target[1:], "--outdir", str(folder / "converted"), str(folder / f"source{suffix}"),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limits.seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ExtractionError(
                f"{path!r} was not converted by LibreOffice within {limits.seconds:g} s; raise limits.seconds"
            ) from error
        except OSError as error:
            raise ExtractionError(
                f"{path!r}: LibreOffice cannot be run ({error.strerror}); install it again"
            ) from error
        converted = folder / "converted" / f"source{target}"
        if not converted.is_file():
            reason = _reason(done.stderr or done.stdout, str(converted.parent))
            raise ExtractionError(f"{path!r} cannot be converted by LibreOffice ({reason}); save it as {target}")
        try:
            found = read_office(str(converted), limits)
        except ExtractionError as error:
            raise ExtractionError(str(error).replace(str(converted), path)) from error
    return replace(found, source=path, digest=sha256(data).hexdigest())


def _lost(counts: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """Say which kinds of content are missing in the text, if that is more than a few words."""
    total = words_of(text).total() + sum(counts.values())
    return tuple(
        f"{numbered(count, f'[word of its {kind} was|words of its {kind} were]')} not read; save it as PDF or text to "
        "have all of it searched"
        for kind, count in sorted(counts.items())
        if are_many(count, total)
    )


def _reason(output: bytes, folder: str) -> str:
    """Return the errors of LibreOffice in one line, without its warnings, which are about its own installation."""
    lines = output.decode(errors="replace").replace(folder + os.sep, "").splitlines()
    errors = [line for line in map(str.strip, lines) if line and not line.lower().startswith("warn")]
    return " ".join(dict.fromkeys(line.removeprefix("Error: ") for line in errors))[:200] or "it gave no reason"
