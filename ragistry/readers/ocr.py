"""Read pages without text with tesseract, if it is installed."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ragistry.errors import ExtractionError
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import TESSERACT as PROGRAM
from ragistry.readers.reader_process import read_in_worker
from ragistry.text.languages import chunk_language

HOW = (
    "to read it, install tesseract (`apt install tesseract-ocr`, `brew install tesseract`), leave the setting "
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
"""Tesseract's codes of the languages of documents."""


def read_page(path: str, page: int, language: str, limits: ExtractLimits) -> str:
    """Read the text of a PDF page by OCR. The worker that reads PDFs draws the page.

    Args:
        path: Path of the PDF.
        page: Number of the page, from 1.
        language: Language by its name or code; English if it is unknown.
        limits: ``seconds`` limits each of the two steps.

    Raises:
        ExtractionError: The page cannot be read.
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
        text = " ".join(done.stderr.decode(errors="replace").split())
        raise ExtractionError(f"{PROGRAM} failed ({text[:200]}); run it in a terminal")
    return done.stdout.decode(errors="replace").replace("\f", "")


@cache
def _languages() -> frozenset[str]:
    """Return the codes that tesseract has data for; without a code it reads English."""
    try:
        done = subprocess.run([PROGRAM, "--list-langs"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(done.stdout.split())
