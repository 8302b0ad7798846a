"""Pages without text, read by tesseract where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ragistry.errors import ExtractionError
from ragistry.utils.documents.extracted import ExtractLimits
from ragistry.utils.documents.reader_process import read_in_worker
from ragistry.utils.text.languages import chunk_language

PROGRAM = "tesseract"
HOW = (
    "to have it read, install tesseract (`apt install tesseract-ocr`, `brew install tesseract`), leave the setting "
    "`ocr` at auto, and ingest it again"
)
CODES = {
    "arabic": "ara", "armenian": "hye", "basque": "eus", "burmese": "mya", "catalan": "cat", "chinese": "chi_sim",
    "czech": "ces", "danish": "dan", "dutch": "nld", "english": "eng", "esperanto": "epo", "estonian": "est",
    "finnish": "fin", "french": "fra", "german": "deu", "greek": "ell", "hindi": "hin", "hungarian": "hun",
    "indonesian": "ind", "irish": "gle", "italian": "ita", "japanese": "jpn", "khmer": "khm", "korean": "kor",
    "lao": "lao", "lithuanian": "lit", "nepali": "nep", "norwegian": "nor", "persian": "fas", "polish": "pol",
    "portuguese": "por", "romanian": "ron", "russian": "rus", "serbian": "srp", "spanish": "spa", "swedish": "swe",
    "none": "eng", "sesotho": "eng", "tamil": "tam", "thai": "tha", "turkish": "tur", "yiddish": "yid",
}  # fmt: skip
"""What tesseract calls the languages of documents."""


def is_installed() -> bool:
    """Whether there is a tesseract."""
    return shutil.which(PROGRAM) is not None


def read_page(path: str, page: int, language: str, limits: ExtractLimits) -> str:
    """The text of a page of a PDF, counted from 1, in a language by its name or code (any other: English).

    It is drawn by the worker that reads PDFs. ``limits.seconds`` is the time of each of the two steps. Raises
    `ExtractionError`.
    """
    code = CODES[chunk_language({"language": language}, "english")]
    with TemporaryDirectory(prefix="ragistry-") as folder:
        image = str(Path(folder) / "page.pgm")
        read_in_worker(path, "draw", limits, "repair it (qpdf in.pdf out.pdf)", page=page, image=image)
        command = [PROGRAM, image, "stdout", *(["-l", code] if code in _languages() else [])]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limits.seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ExtractionError(f"{PROGRAM} took longer than {limits.seconds:g} s; raise limits.seconds") from error
        except OSError as error:
            raise ExtractionError(f"{PROGRAM} cannot be run ({error.strerror}); install it again") from error
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise ExtractionError(f"{PROGRAM} failed ({said[:200]}); try it by hand")
    return done.stdout.decode(errors="replace").replace("\f", "")


@cache
def _languages() -> frozenset[str]:
    """What tesseract has data of; without a language it reads English."""
    try:
        done = subprocess.run([PROGRAM, "--list-langs"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(done.stdout.split())
