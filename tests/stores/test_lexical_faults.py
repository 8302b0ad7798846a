"""The lexical index when files are damaged, writers die or meet each other, and the disk is full."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragistry.errors import EmptyQueryError, StoreCorruptError, StoreError, StoreLockedError
from ragistry.stores.lexical import LexicalIndex
from ragistry.stores.lexical_errors import translated

KINDS = ("meta.json", ".managed.json", "analysis.json", "idx", "term", "fast", "fieldnorm", "store", "pos", "del")
WORDS = [f"word{number}" for number in range(40)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments, the first with deleted chunks; 398 in all."""
    folder = tmp_path_factory.mktemp("sound") / "lexical"
    dice = random.Random(2)
    texts = [" ".join(dice.choices(WORDS, k=30)) for _ in range(400)]
    LexicalIndex.build(folder, list(enumerate(texts))[:300])
    LexicalIndex(folder).apply(list(enumerate(texts))[300:], [5, 7])
    assert LexicalIndex(folder).check(398) == ""
    return folder


def damaged(data: bytes, how: str) -> bytes:
    third = len(data) // 3
    return {
        "emptied": b"",
        "cut": data[: len(data) // 2],
        "shortened": data[:-2],
        "garbled": data[:third] + random.Random(4).randbytes(third) + data[2 * third :],
        "zeroed": data[:third] + bytes(third) + data[2 * third :],
        "lengthened": data + b"garbage",
    }[how]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["deleted", "emptied", "cut", "shortened", "garbled", "zeroed", "lengthened"])
def test_damage_is_noticed_on_open_or_by_check(sound: Path, tmp_path: Path, kind: str, how: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    [path, *_] = sorted(folder.glob(kind if kind.endswith("json") else f"*.{kind}"))
    if how == "deleted":
        path.unlink()
    else:
        path.write_bytes(damaged(path.read_bytes(), how))
    says = outcome(folder)
    if says == "answered":
        says = LexicalIndex(folder).check(398)
    assert "ragistry repair" in says


def outcome(folder: Path) -> str:
    """What opening and searching says."""
    try:
        index = LexicalIndex(folder)
        for word in WORDS:
            index.search(f"{word} word1 word2", 5)
    except StoreCorruptError as error:
        return f"{type(error.__cause__).__name__}: {error}"
    return "answered"


def test_damage_that_comes_while_it_is_open_is_noticed(sound: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    index = LexicalIndex(folder)
    shutil.rmtree(folder)
    with pytest.raises(StoreCorruptError, match="ragistry repair"):
        index.search("word1", 5)
    with pytest.raises(StoreCorruptError, match="ragistry repair"):
        index.apply([(1, "a")], [])
    assert "ragistry repair" in index.check()
    assert not folder.exists()


def test_a_count_that_is_not_the_stores_is_noticed(sound: Path) -> None:
    assert "it has 398 chunks, the store has 400; run `ragistry repair`" in LexicalIndex(sound).check(400)
    assert LexicalIndex(sound).check() == ""


PAUSED = """
import sys, time
from pathlib import Path
from ragistry.stores import lexical, lexical_writing
analyse = lexical_writing.analyse
def paused(text, language):
    if text == "pause":
        print("writing", flush=True)
        time.sleep(60)
    return analyse(text, language)
lexical_writing.analyse = paused
rows = [(key, f"mate{key} green leaf") for key in range(1000, 3000)]
lexical.LexicalIndex(Path(sys.argv[1])).apply([*rows, (9000, "pause")], [5])
"""

BATCHES = """
import sys
from pathlib import Path
from ragistry.stores.lexical import LexicalIndex
index = LexicalIndex(Path(sys.argv[1]))
for batch in range(1000):
    index.apply([(1000 + 20 * batch + row, f"mate{batch} green") for row in range(20)], [batch])
    print(batch, flush=True)
"""


def started(script: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True)


def killed(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGKILL)
    return process.communicate(timeout=60)[0]


def test_a_second_writer_is_told_and_a_killed_one_leaves_no_lock(sound: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    index = LexicalIndex(folder)
    process = started(PAUSED, folder)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        with pytest.raises(StoreLockedError, match="another process; wait until it is done"):
            index.apply([(1, "tea")], [])
        assert index.search("mate1000", 1)[0].tolist() == []
    finally:
        killed(process)
    assert index.check(398) == ""
    index.apply([(1, "tea")], [])
    assert index.search("tea", 1)[0].tolist() == [1]
    assert index.check(398) == ""


@pytest.mark.parametrize("acknowledged", [1, 2, 4])
def test_a_kill_loses_nothing_that_was_applied(sound: Path, tmp_path: Path, acknowledged: int) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    process = started(BATCHES, folder)
    assert process.stdout is not None
    for batch in range(acknowledged):
        assert process.stdout.readline() == f"{batch}\n"
    applied = acknowledged + len(killed(process).splitlines())
    index = LexicalIndex(folder)
    assert index.check() == ""
    for batch in range(applied):
        assert index.search(f"mate{batch}", 20)[0].tolist() == list(range(1000 + 20 * batch, 1020 + 20 * batch))
    # The batch after, of which nobody heard that it was applied, is wholly there or not at all.
    assert len(index.search(f"mate{applied}", 20)[0]) in (0, 20)
    index.apply([(1000 + 20 * applied + row, f"mate{applied} green") for row in range(20)], [applied])
    expected = {*range(400), *range(1000, 1020 + 20 * applied)} - {5, 7, *range(applied + 1)}
    assert set(index.keys().tolist()) == expected


def test_the_same_work_can_be_done_again_after_a_kill_just_before_it_counted(sound: Path, tmp_path: Path) -> None:
    """Everything is written but the last step, the new meta.json: the names of the files are taken."""
    once = shutil.copytree(sound, tmp_path / "once")
    again = shutil.copytree(sound, tmp_path / "again")
    work = ([(500, "mate"), (6, "tea")], [8, 9])
    LexicalIndex(once).apply(*work)
    for path in once.iterdir():
        if path.name != "meta.json":
            shutil.copy(path, again / path.name)
    index = LexicalIndex(again)
    assert index.check(398) == ""
    index.apply(*work)
    assert index.keys().tolist() == LexicalIndex(once).keys().tolist()
    assert len(list(again.glob("*.idx"))) == 3  # and nothing of the first attempt
    assert index.check(397) == ""


FULL = """
import resource, sys
from pathlib import Path
from ragistry.errors import StoreError
from ragistry.stores.lexical import LexicalIndex
index = LexicalIndex(Path(sys.argv[1]))
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limit[1]))
rows = [(key, " ".join(f"w{key * 7 + word}" for word in range(50))) for key in range(5000)]
try:
    index.apply(rows, [])
except StoreError as error:
    print(type(error).__name__, error)
print(index.count())
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
index.apply(rows, [])
print(index.count(), repr(index.check(5000)))
"""


def test_a_full_disk_is_said_and_leaves_what_was_there(sound: Path, tmp_path: Path) -> None:
    """A limit on the size of files, since a test has no disk to fill; tantivy sees it as it sees a full one."""
    folder = shutil.copytree(sound, tmp_path / "lexical")
    said, before, after = started(FULL, folder).communicate(timeout=60)[0].splitlines()
    assert said.startswith("StoreError the lexical index at ")
    assert "'File too large'; make room on the disk, and try again" in said
    assert before == "398"
    assert after == "5000 ''"


class PanicException(BaseException):
    """As tantivy's, which is no `Exception`."""


@pytest.mark.parametrize(
    ("error", "ours", "remedy"),
    [
        (ValueError("Failed to acquire Lockfile: LockBusy. Some(...)"), StoreLockedError, "wait until it is done"),
        (ValueError("'No space left on device (os error 28)'"), StoreError, "make room on the disk"),
        (ValueError("IoError(Os { code: 13, kind: PermissionDenied })"), StoreError, "make the folder writable"),
        (ValueError("... Read-only file system (os error 30)"), StoreError, "make the folder writable"),
        (ValueError("... Too many open files (os error 24)"), StoreError, "ulimit -n"),
        (ValueError("An IO error occurred: 'Input/output error (os error 5)'"), StoreCorruptError, "ragistry repair"),
        (PermissionError(13, "Permission denied"), StoreError, "make the folder writable"),
        (FileNotFoundError(2, "No such file or directory"), StoreCorruptError, "ragistry repair"),
        (ValueError('Failed to open: \'FileDoesNotExist("x.idx")\''), StoreCorruptError, "ragistry repair"),
        (ValueError("Data corrupted: 'Data corruption'"), StoreCorruptError, "ragistry repair"),
        (RuntimeError("IndexWriter was consumed"), StoreCorruptError, "ragistry repair"),
        (PanicException("index out of bounds"), StoreCorruptError, "ragistry repair"),
    ],
)  # fmt: skip
def test_errors_of_tantivy_become_ours(error: BaseException, ours: type[StoreError], remedy: str) -> None:
    with pytest.raises(ours, match=remedy) as raised, translated(Path("folder")):
        raise error
    assert raised.type is ours
    assert raised.value.__cause__ is error
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyError("key"), EmptyQueryError("ours")])
def test_other_errors_pass(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, translated(Path("folder")):
        raise error
    assert raised.value is error


def test_a_panic_over_damaged_postings_is_reported_as_damage(sound: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "lexical")
    [path, *_] = sorted(folder.glob("*.idx"))
    whole = path.read_bytes()
    said = set()
    for at in range(60, 1500, 60):
        beside = tmp_path / "damaged"
        beside.write_bytes(whole[:at] + b"\xff" * 40 + whole[at + 40 :])
        beside.replace(path)  # a thread of tantivy's may still read the file before, and dies where it is cut
        said.add(outcome(folder).partition(":")[0])
    assert "PanicException" in said
    assert said <= {"PanicException", "ValueError", "answered"}
