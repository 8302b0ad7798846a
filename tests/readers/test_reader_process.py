"""The life of the worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest

from ragistry.errors import ExtractionError
from ragistry.readers import reader_process
from ragistry.readers.extract import extract
from ragistry.readers.extracted import ExtractLimits
from tests.messages import refused
from tests.readers.raw_pdf import one_page, slow_for_pypdf

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="watches processes through /proc")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.pdf"
    path.write_bytes(one_page("Good"))
    return path


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "slow.pdf"
    path.write_bytes(slow_for_pypdf())
    return path


@pytest.fixture(autouse=True)
def _fresh() -> None:
    reader_process.close_workers()


def idle() -> list[int]:
    return [worker.pid for worker in reader_process._idle]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    end = monotonic() + seconds
    while not holds() and monotonic() < end:
        sleep(0.02)
    return holds()


def test_one_process_reads_many_files(good: Path) -> None:
    extract(good)
    worker = idle()
    for _ in range(20):
        extract(good)
        extract(good, pdf_engine="pypdf")
    assert len(worker) == 1
    assert idle() == worker


def test_threads_read_at_the_same_time(good: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda _: extract(good).text, range(40)))
    assert texts == ["Good"] * 40
    assert 1 <= len(idle()) <= 4


def test_a_slow_file_holds_up_no_other_thread(good: Path, slow: Path) -> None:
    refusals: list[str] = []

    def read_slow() -> None:
        with refused(ExtractionError):
            extract(slow, pdf_engine="pypdf", limits=ExtractLimits(seconds=4))
        refusals.append("slow")

    thread = threading.Thread(target=read_slow)
    thread.start()
    assert extract(good).text == "Good"
    assert refusals == []
    thread.join()
    assert refusals == ["slow"]


def test_a_worker_that_died_while_idle_is_replaced(good: Path) -> None:
    extract(good)
    [worker] = idle()
    os.kill(worker, signal.SIGKILL)
    assert wait_until(lambda: not alive(worker))
    assert extract(good).text == "Good"
    assert idle() != [worker]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What Python does with an interrupt, whatever a library has put in its place."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_no_worker_behind(slow: Path, good: Path) -> None:
    before = children_of(os.getpid())

    def interrupt() -> None:
        assert wait_until(lambda: children_of(os.getpid()) != before)
        sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        extract(slow, pdf_engine="pypdf")
    thread.join()
    assert idle() == []
    assert children_of(os.getpid()) == before
    assert extract(good).text == "Good"


def test_an_interrupt_from_the_terminal_does_not_end_an_idle_worker(good: Path) -> None:
    extract(good)
    worker = idle()
    os.kill(worker[0], signal.SIGINT)
    assert extract(good).text == "Good"
    assert idle() == worker


def test_a_worker_dies_with_its_parent_even_in_the_middle_of_a_file(slow: Path) -> None:
    code = f"from ragistry.readers.extract import extract; extract({str(slow)!r}, pdf_engine='pypdf')"
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        assert wait_until(lambda: bool(children_of(parent.pid)))
        [worker] = children_of(parent.pid)
        sleep(0.5)
        assert alive(worker)
        parent.kill()
    assert wait_until(lambda: not alive(worker))


def test_a_fork_starts_a_worker_of_its_own(good: Path) -> None:
    code = f"""
        import os
        from ragistry.readers import reader_process
        from ragistry.readers.extract import extract
        extract({str(good)!r})
        parents = [worker.pid for worker in reader_process._idle]
        child = os.fork()
        assert extract({str(good)!r}).text == "Good"
        same = [worker.pid for worker in reader_process._idle] == parents
        if child:
            assert same and os.waitpid(child, 0)[1] == 0
        else:
            assert not same
    """
    assert run(code) == (0, "")


def test_workers_end_with_the_program_and_without_warnings(good: Path) -> None:
    code = f"""
        from ragistry.readers import reader_process
        from ragistry.readers.extract import extract
        extract({str(good)!r})
        print(reader_process._idle[0].pid)
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert not alive(int(done.stdout))


def test_libraries_are_loaded_by_who_needs_them(good: Path) -> None:
    code = f"""
        import sys
        from ragistry.readers.extract import extract
        assert extract({str(good)!r}).text == "Good"
        loaded = {{"pypdfium2", "pypdf", "chardet"}} & set(sys.modules)
        assert not loaded, loaded
    """
    assert run(code) == (0, "")


def test_a_module_in_the_current_folder_is_not_run(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("open('trapped', 'w')")
    monkeypatch.chdir(tmp_path)
    assert extract(good).text == "Good"
    assert not Path("trapped").exists()


def test_a_worker_that_cannot_start_is_an_extraction_error(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with refused(ExtractionError):
        extract(good)


def run(code: str) -> tuple[int, str]:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr
