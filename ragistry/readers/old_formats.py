"""Read documents in the old formats of Office, which LibreOffice converts, if it is installed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from ragistry.errors import ExtractionError, UnsupportedFormatError
from ragistry.readers import formats
from ragistry.readers.extracted import Extracted, ExtractLimits, read_at_most
from ragistry.readers.office import read_office


def read_old(path: str, limits: ExtractLimits) -> Extracted:
    """Convert a document to its present format, and read that.

    Raises:
        UnsupportedFormatError: LibreOffice is not installed.
        ExtractionError: It cannot convert the file within ``limits.seconds``, or the result is over a limit.
    """
    suffix = Path(path).suffix.lower()
    target = formats.CONVERTED[suffix]
    if not formats.libreoffice():
        raise UnsupportedFormatError(
            f"{path!r} has the old format {suffix!r}; {formats.INSTALL_LIBREOFFICE}, or save it as {target}"
        )
    data = read_at_most(path, int(limits.bytes))
    with TemporaryDirectory(prefix="ragistry-") as name:
        folder = Path(name)
        (folder / f"source{suffix}").write_bytes(data)
        profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
        command = [
            formats.libreoffice(), "--headless", "--norestore", profile,
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


def _reason(output: bytes, folder: str) -> str:
    """Return the errors of LibreOffice in one line, without its warnings, which are about its own installation."""
    lines = output.decode(errors="replace").replace(folder + os.sep, "").splitlines()
    errors = [line for line in map(str.strip, lines) if line and not line.lower().startswith("warn")]
    return " ".join(dict.fromkeys(line.removeprefix("Error: ") for line in errors))[:200] or "it gave no reason"
