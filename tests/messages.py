"""Check errors by type and by the values that they name; their wording stands in ``messages.txt``.

`refused` and `check_message` compare a message with the snapshot of the running test. After a message was changed on
purpose, ``pytest --write-messages`` writes the snapshot again, and ``git diff tests/messages.txt`` shows every
message that changed. In the file, ``…`` stands for what differs from run to run, and for words of Python and of
libraries.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import TypeVar

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "messages.txt"
HEADING = (
    "# The messages that the tests expect, by test. `pytest --write-messages` writes this file; … matches any text.\n"
)
Raised = TypeVar("Raised", bound=BaseException)

_writing = False
_seen: dict[str, list[str]] = {}
_REPLACED = [
    (re.compile(re.escape(sysconfig.get_path("purelib"))), "<packages>"),
    (re.compile(f"'?{re.escape(sys.executable)}'?"), "<python>"),  # a path with a space is quoted
    (re.compile(re.escape(str(ROOT))), "<project>"),
    (re.compile(r"/[^\s'\"]*?pytest-of-[^/\s]+/pytest-\d+(/popen-gw\d+)?/[^/\s'\"`,;:)]+"), "<tmp>"),
    (re.compile(rf"({re.escape(tempfile.gettempdir())}|/dev/shm|/tmp)/[\w.-]+"), "<tmp>"),
    (re.compile(r"(127\.0\.0\.\d+|localhost|\[::1\]):\d{4,5}\b"), r"\1:<port>"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "<hash>"),
    (re.compile(r"\bat 0x[0-9a-f]+"), "at …"),
]
_FOREIGN = re.compile(
    r"""(?:\[Errno\ -?\d+\]\ )?(?:STRERROR)
    | \[Errno\ -?\d+\]\ .*?END                                                               # the system
    | (?:[\w.<>]+\(\)\ )?(?:missing\ (?:a|\d+)\ required\ |takes\ .*?\ positional|got\ an?\ unexpected\ key).*?END
    | (?:too\ many\ positional|multiple\ values\ for).*?END                                    # calls
    | (?:'[\w.]+'\ object|must\ be\ real\ number|could\ not\ convert|invalid\ literal|'[\w-]+'\ codec).*?END # values
    | (?:Expecting|Extra\ data|Unterminated\ string|Invalid\ control)\b.*?(?:\(char\ \d+\)|END)  # json
    | (?:Port\ (?:out\ of|could)|Invalid\ IPv6\ URL|No\ module\ named).*?END                   # addresses, modules
    | (?:Input\ should|Field\ required|(?:String|List|Data)\ should|Invalid\ JSON).*?END
    | (?:Extra\ inputs|Unexpected\ keyword\ argument).*?END                                    # pydantic
    | (?:did\ not\ find\ expected|could\ not\ find\ expected|mapping\ values\ are).*?END        # YAML
    | (?:file\ is\ not\ a\ database|unable\ to\ open\ database|database\ disk\ image).*?END     # SQLite
    """.replace("STRERROR", "|".join(map(re.escape, sorted(map(os.strerror, errno.errorcode), key=len, reverse=True))))
    .replace(r"\#", "[#]")
    .replace("END", r"(?=,\ got\ |,\ in\ '|,\ twice|[;)…]|'\s*;|\\n|\.?$|\.\s)"),
    re.VERBOSE | re.MULTILINE,
)
"""Words of Python, of the system and of libraries. They differ between versions, so they are not compared."""


@contextmanager
def refused(kind: type[Raised] | tuple[type[Raised], ...], *values: object) -> Iterator[pytest.ExceptionInfo[Raised]]:
    """Expect an error of this type whose message names the values and equals its snapshot."""
    with pytest.raises(kind) as caught:
        yield caught
    check_message(f"{type(caught.value).__name__}: {caught.value}", *values)


def check_message(text: str, *values: object) -> None:
    """Compare a message with the next one in the snapshot of the running test.

    Args:
        text: The message. Temporary folders, ports and hashes in it are replaced.
        values: What the message must name, as text.
    """
    __tracebackhide__ = True
    for value in values:
        assert str(value) in text, f"the message does not name {value!r}: {text}"
    test = os.environ["PYTEST_CURRENT_TEST"].removeprefix("tests/").rpartition(" (")[0]
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    text = _own_words("".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text.strip()))
    messages = _seen.setdefault(test, [])
    messages.append(text)
    expected = _snapshot().get(test, [])
    if _writing:
        return
    assert len(messages) <= len(expected), f"not in tests/messages.txt: {text}\nrun pytest --write-messages"
    assert _matches(text, expected[len(messages) - 1]), (
        f"the message differs from tests/messages.txt; if it should, run pytest --write-messages\n"
        f"  now:      {text}\n  expected: {expected[len(messages) - 1]}"
    )


def _own_words(text: str) -> str:
    return _FOREIGN.sub("…", text)


def _matches(text: str, expected: str) -> bool:
    expected = _own_words(expected)
    pattern = re.sub(r"[*?[]", r"[\g<0>]", expected).replace("…", "*")
    return text == expected or fnmatchcase(text, pattern)


@cache
def _snapshot() -> dict[str, list[str]]:
    """Messages by test, from the file: a line of the test, then an indented line for each message."""
    found: dict[str, list[str]] = {}
    test = ""
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []:
        if line.startswith("    "):
            found[test].append(line[4:])
        elif line and not line.startswith("#"):
            test = line
            found[test] = []
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-messages", action="store_true", help="write tests/messages.txt from the tests that run")


def pytest_configure(config: pytest.Config) -> None:
    global _writing
    _writing = config.getoption("--write-messages")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _seen.pop(item.nodeid.removeprefix("tests/"), None)


def pytest_sessionfinish() -> None:
    """Merge what this process saw into the file; tests that did not run keep their messages."""
    if not _writing or not _seen:
        return
    with FileLock(Path(gettempdir()) / "ragistry-messages.lock"):
        _snapshot.cache_clear()
        merged = _snapshot()
        for test, messages in _seen.items():
            before = merged.get(test, [])
            merged[test] = [
                _own_words(before[number]) if number < len(before) and _matches(text, before[number]) else text
                for number, text in enumerate(messages)
            ]
        run = {_function(test) for test in _seen} if "PYTEST_XDIST_WORKER" not in os.environ else set()
        known = {
            test: messages
            for test, messages in merged.items()
            if _exists(test) and (test in _seen or _function(test) not in run)
        }
        blocks = [test + "\n" + "".join(f"    {text}\n" for text in known[test]) for test in sorted(known)]
        FILE.write_text(HEADING + "\n" + "\n".join(blocks), encoding="utf-8")


def _function(test: str) -> str:
    return test.partition("[")[0]


def _exists(test: str) -> bool:
    file, _, function = _function(test).partition("::")
    path = ROOT / "tests" / file
    return path.exists() and f"def {function.rpartition('::')[2]}(" in path.read_text(encoding="utf-8")
