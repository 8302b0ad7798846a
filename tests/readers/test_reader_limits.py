"""Every reader ends within its limits of time, memory and output, whatever the file is made to do to it.

The table of formats and attacks is in `hostile_files`. A process of its own reads them, so that a hang or a death is a
failure of one test. The ordinary run moves the limits down and the attacks with them.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import ExtractionError
from ragistry.readers.extract import extract
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import FORMATS, MARKDOWN_EXTS, OFFICE_EXTS, SUPPORTED_FORMATS, TEXT_EXTS
from ragistry.readers.pdf import PDF_ENGINES
from tests.conftest import ROOT, full_run
from tests.readers.hostile_files import CASES, PACKED, Scale, made
from tests.readers.office_files import WORDS

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures processes through /proc")

FULL = full_run()
LIMITS = ExtractLimits() if FULL else ExtractLimits(seconds=0.7, memory=800_000_000, characters=2_000_000)
PATIENCE = 100.0
"""Seconds after which a reader hangs. It is no measure of speed: a limit of the reader must end it much earlier."""
OWN_MEMORY, PER_BYTE = 100_000_000, 10
"""Bytes that this process may use for a file, and for each byte of it: four for a character, in two forms, and its
bytes."""
SECRET = "the-secret-word"

ALIASES = {
    **{suffix: next(one for one in FORMATS if FORMATS[one].module == FORMATS[suffix].module) for suffix in OFFICE_EXTS},
    **{".msg": ".msg", ".oft": ".msg", ".latex": ".tex"},
    **dict.fromkeys((".xls", ".xlt", ".xlsb"), ".xlsx"),  # see test_old_sheets.py
}
ATTACKS = {"bomb", "line", "nesting", "entity", "length"}
SLOW = {
    *((suffix, "bomb-words") for suffix in PACKED),
    *((".xlsx", "length"), (".ods", "length"), (".epub", "bomb-spine"), (".pdf", "bomb-text"), (".eml", "bomb-names")),
    *(
        (".eml", "bomb"),
        (".eml", "nesting-parts"),
        (".html", "line-heads"),
        (".tex", "line-math"),
        (".rst", "line-ends"),
    ),
}
"""Cases of the full run; the ordinary one has a quicker one of their kind."""
SENSELESS = {(".txt", "bomb"): "nothing in it stands for something longer", (".msg", "entity"): "it refers to nothing"}


class Probe:
    """The process that reads, started again after it was lost."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, engine: str = "pypdfium2") -> dict[str, Any]:
        limits = {name: getattr(LIMITS, name) for name in LIMITS.__slots__}
        if self.process is None:
            command, pipe = [sys.executable, "-m", "tests.readers.reader_probe"], subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"path": str(path), "engine": engine, "limits": limits, "secret": SECRET}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        is_ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if is_ready else b""
        if not line:
            ending = self.close()
            pytest.fail("the reader hangs" if not is_ready else f"the process that called the reader died: {ending}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> int:
        if self.process is None:
            return 0
        process, self.process = self.process, None
        with process:
            process.kill()
        return process.returncode


@pytest.fixture(scope="module")
def probe() -> Iterator[Probe]:
    running = Probe()
    yield running
    running.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """What the URLs in the files lead to."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        yield listening


@pytest.fixture
def scale(listener: socket.socket, tmp_path: Path) -> Scale:
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET, encoding="utf-8")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/secret"
    if FULL:
        return Scale(3_000_000_000, 100_000_000, 1_000_000, str(secret), url)
    return Scale(200_000_000, 1_000_000, 50_000, str(secret), url)


def engines(suffix: str) -> tuple[str, ...]:
    return PDF_ENGINES if suffix == ".pdf" else PDF_ENGINES[:1]


@pytest.mark.timeout(1.5 * PATIENCE)
@pytest.mark.parametrize(
    ("suffix", "attack", "engine"),
    [
        (suffix, attack, engine)
        for suffix, attack in sorted(CASES.keys() - (set() if FULL else SLOW))
        for engine in engines(suffix)
    ],
)
def test_hostile_file_is_read_or_refused_within_the_limits(
    suffix: str, attack: str, engine: str, scale: Scale, probe: Probe, listener: socket.socket, tmp_path: Path
) -> None:
    path = tmp_path / f"hostile{suffix}"
    path.write_bytes(CASES[suffix, attack](scale))
    found = probe.read(path, engine)
    assert found["kind"] in ("text", "refused"), found
    if found["kind"] == "refused":
        assert str(path) in found["said"]
        assert "\n" not in found["said"]
    assert not found["leaked"]
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert found["own"] < OWN_MEMORY + PER_BYTE * path.stat().st_size
    assert found["worker"] < LIMITS.memory
    if suffix not in (".txt", ".md", ".zip"):  # of which the size is limited
        assert found["characters"] <= LIMITS.characters
    assert found["metadata"] < 10_000


def test_every_format_meets_every_attack() -> None:
    families = dict.fromkeys(TEXT_EXTS, ".txt") | dict.fromkeys(MARKDOWN_EXTS, ".md")
    read = {families.get(suffix, ALIASES.get(suffix, suffix)) for suffix in SUPPORTED_FORMATS} | {".zip"}
    tried = {(suffix, attack.partition("-")[0]) for suffix, attack in CASES} | SENSELESS.keys()
    assert {(suffix, attack) for suffix in read for attack in ATTACKS} == tried


SLOW_WORKER = """
import re
from ragistry.readers import reader_worker

reader_worker._read_office = lambda *_: re.match("(a|aa)+$", 100 * "a" + "b")
reader_worker.main()
"""


def test_worker_ends_itself_where_no_other_thread_of_it_can_run(tmp_path: Path) -> None:
    """A regular expression that takes hours does not see that the parent is gone, and nobody is left to kill it."""
    path = tmp_path / "a.html"
    path.write_bytes(b"<p>Words.</p>")
    request = {"path": str(path), "engine": "office", "pages": 1, "characters": 1_000, "memory": 10**9}
    line = json.dumps(request | {"bytes": 10**8, "seconds": 0.1}).encode() + b"\n"
    command, pipe = [sys.executable, "-c", SLOW_WORKER], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as worker:
        try:
            assert worker.stdin is not None
            worker.stdin.write(line)
            worker.stdin.flush()
            assert worker.wait(timeout=PATIENCE) not in (0, -signal.SIGKILL)
        finally:
            worker.kill()


def test_file_that_grows_is_read_up_to_the_limit(tmp_path: Path) -> None:
    """A file of /proc has more bytes than its size says, which is 0."""
    for suffix in (".txt", ".rst"):
        link = tmp_path / f"a{suffix}"
        link.symlink_to("/proc/self/smaps")
        with suppress(FileNotFoundError):
            assert link.stat().st_size == 0
        with pytest.raises(ExtractionError, match="more than") as refusal:
            extract(link, limits=ExtractLimits(bytes=1_000))
        assert str(link) in str(refusal.value)


def test_long_title_is_cut_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(f"---\ntags: [{'a, ' * 300}]\ntitle: {'cedar ' * 1_000}\n---\n{WORDS}", encoding="utf-8")
    found = extract(path)
    assert len(found.metadata["title"]) == 2_000
    assert "title" in found.warnings[-1]


def test_ordinary_office_document_is_within_the_limits(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(made(".docx"))
    assert WORDS in extract(path, limits=ExtractLimits(memory=LIMITS.memory)).text
