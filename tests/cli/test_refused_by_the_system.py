"""What the system refuses is one line with the path and the reason, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.errors import ConfigError, InvalidConfigError, StoreError
from tests.cli.conftest import Done

Run = Callable[..., Done]
LONG = "a" * 300
CAPABILITIES = "-dac_override,-dac_read_search"
UNPRIVILEGED = ["setpriv", f"--bounding-set={CAPABILITIES}", f"--inh-caps={CAPABILITIES}"] if os.geteuid() == 0 else []
without_privilege = pytest.mark.skipif(
    bool(UNPRIVILEGED) and not shutil.which("setpriv"), reason="root may read everything"
)


def plainly(*words: object, cwd: Path) -> Done:
    """A command without root's right to read everything."""
    command = [*UNPRIVILEGED, sys.executable, "-m", "ragistry", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=100)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "some/file"), "'some/file': Permission denied"),
        (OSError(36, "File name too long", b"\xe9"), r"'\udce9': File name too long"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (TimeoutError("too\nslow"), "too slow"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    ragistry: Run, monkeypatch: pytest.MonkeyPatch, error: OSError, line: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ragistry.workspace.open_workspace", refuse)
    assert ragistry("config") == Done(1, "", f"error: {line}; `--debug` shows where\n")
    with pytest.raises(type(error)):
        ragistry("config", "--debug")


def test_a_workspace_with_too_long_a_name_is_refused(ragistry: Run, tmp_path: Path) -> None:
    done = ragistry("-w", LONG, "sources", "list")
    assert done == Done(1, "", f"error: the folder {LONG!r} cannot be opened: File name too long; give another\n")
    with pytest.raises(ConfigError, match="File name too long; give another"):
        open_workspace(tmp_path / LONG)


def test_a_file_with_too_long_a_name_is_refused(ragistry: Run) -> None:
    done = ragistry("ingest", f"{LONG}.md", "-c", "c")
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert f"'{LONG}.md'" in done.err
    assert "File name too long" in done.err


@without_privilege
def test_folders_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "s.md").write_text("Otters.", encoding="utf-8")
    assert plainly("ingest", "n", "-c", "c", cwd=tmp_path).code == 0
    expected = {
        "n": (["ingest", "n/s.md", "-c", "c"], "'n/s.md'"),
        ".ragistry": (["search", "x"], ".ragistry' cannot be opened: Permission denied; make the folder"),
        "config": (["search", "x"], "config/documents.yaml: cannot be read: Permission denied; make its folder"),
    }
    for folder, (words, said) in expected.items():
        (tmp_path / folder).chmod(0)
        done = plainly(*words, cwd=tmp_path)
        checked = plainly("doctor", cwd=tmp_path)
        (tmp_path / folder).chmod(0o755)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: ")
        assert said in done.err
        assert "Permission denied" in done.err
        assert "Traceback" not in done.err + checked.err
        assert checked.out.startswith("ok      versions: ")
        assert (said in checked.out, checked.code) == ((folder != "n"), int(folder != "n"))


def _refused(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_library_raises_errors_of_ours_for_what_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_workspace(tmp_path) as opened:
        monkeypatch.setattr("ragistry.stores.local.LocalStore.__init__", _refused)
        with pytest.raises(StoreError, match="cannot be opened: Permission denied; .* data_dir"):
            opened.store  # noqa: B018, opened on use
    monkeypatch.setattr(Path, "exists", _refused)
    with pytest.raises(InvalidConfigError, match=r"(?s)documents\.yaml: cannot be read: .*techniques\.yaml: cannot be"):
        open_workspace(tmp_path)
