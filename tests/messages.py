"""Check errors by type and by the values that they name; their wording stands in ``messages.txt``.

`refused` and `check_message` look for a message in the snapshot, which holds each message once, below the module that
raises it, or below the test file that reads it from output. After a message was changed on purpose,
``pytest --write-messages`` adds it, and ``git diff tests/messages.txt`` shows what is new. With
``--write-messages=all``, over the whole suite, the messages that no test saw are dropped. In the file, ``…`` stands
for what differs from run to run, and for words of Python and of libraries.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "messages.txt"
HEADING = (
    "# The messages that the tests expect, by the module that raises them or the test that reads them.\n"
    "# `pytest --write-messages` writes this file; … matches any text.\n"
)
Raised = TypeVar("Raised", bound=BaseException)

_writing = ""
_seen: dict[str, str] = {}
"""The place of each message that this run saw, by message."""
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
    check_message(str(caught.value), *values, raised=caught.value)


def check_message(text: str, *values: object, raised: BaseException | None = None) -> None:
    """Look for a message in the snapshot.

    Args:
        text: The message. Temporary folders, ports and hashes in it are replaced.
        values: What the message must name, as text.
        raised: The error that has the message, if the test has it.
    """
    __tracebackhide__ = True
    for value in values:
        assert str(value) in text, f"the message does not name {value!r}: {text}"
    text = re.sub(r"^[A-Z]\w+Error: ", "", text)  # the type is not a part of the message
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    text = _own_words("".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text.strip()))
    if text == "…":  # nothing but words of Python or the system
        return
    known = _known(text)
    place = _place(raised)
    _seen[known or text] = min(place, _seen.get(known or text, place))
    if not _writing:
        near = get_close_matches(text, _snapshot(), n=1, cutoff=0) if known is None else []
        assert known is not None, (
            f"not in tests/messages.txt: {text}\n  the nearest: {near}\nif it should be, run pytest --write-messages"
        )


def _place(raised: BaseException | None) -> str:
    """The innermost module of the package that the error passed, else the test file."""
    frames = traceback.extract_tb(raised.__traceback__) if raised else []
    inside = [frame.filename for frame in frames if frame.filename.startswith(f"{ROOT}/ragistry/")]
    return inside[-1].removeprefix(f"{ROOT}/") if inside else os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]


def _own_words(text: str) -> str:
    return _FOREIGN.sub("…", text)


def _known(text: str) -> str | None:
    """The message of the snapshot that is equal to this text, or matches it."""
    if text in _snapshot():
        return text
    return next((message for message, pattern in _patterns() if pattern.fullmatch(text)), None)


@cache
def _snapshot() -> dict[str, str]:
    """The place of each message, from the file: a line for the place, then an indented line for each message."""
    found: dict[str, str] = {}
    place = ""
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []:
        if line.startswith("    "):
            found[_own_words(line[4:])] = place
        elif not line.startswith("#"):
            place = line or place
    return found


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [
        (message, re.compile(".*".join(map(re.escape, message.split("…"))), re.DOTALL))
        for message in _snapshot()
        if "…" in message and re.search(r"\w", message)
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-messages",
        nargs="?",
        const="new",
        default="",
        choices=("new", "all"),
        help="add the messages of the tests that run to tests/messages.txt; 'all' drops those that none saw",
    )


def pytest_configure(config: pytest.Config) -> None:
    global _writing
    _writing = config.getoption("--write-messages")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of xdist saw."""
    _seen.update(getattr(node, "workeroutput", {}).get("messages", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file, or give the messages to the process that writes it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["messages"] = _seen
    elif _writing and _seen:
        messages = _seen if _writing == "all" else _seen | _snapshot()
        places = sorted(set(messages.values()))
        blocks = [
            f"{place}\n" + "".join(f"    {text}\n" for text in sorted(messages) if messages[text] == place)
            for place in places
        ]
        FILE.write_text(HEADING + "\n" + "\n".join(blocks), encoding="utf-8")
