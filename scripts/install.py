"""Make the virtual environment of a clone, or bring it up to date: ``python scripts/install.py FOLDER installed|dev``.

The files ``installed`` and ``dev`` in the environment record what is installed. They are away while packages change,
so that an interrupted installation counts as none. A failure is reported in one line.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)
EXTRAS = {"installed": "ui,mcp,server,chroma", "dev": "ui,mcp,server,chroma,dev"}
UNFINISHED = "unfinished"
FULL = ("No space left on device", "Disk quota exceeded")
UNREACHABLE = ("Retrying (", "Max retries exceeded", "(from versions: none)")


def main(folder: str, level: str) -> None:
    """Install what a level needs into the environment, unless it is there."""
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:3]))
        fail(f"Ragistry needs Python 3.11 or newer, and this is {version}; run make PYTHON=python3.11")
    venv = Path(folder).absolute()
    if is_complete(venv, level):
        with suppress(OSError):  # a read-only clone
            (venv / level).touch()
        return
    if not is_usable(venv):
        create(venv)
    print(f"installing Ragistry with its packages into {folder}; this takes a few minutes", file=sys.stderr, flush=True)
    install(venv, level)


def state_of(venv: Path, level: str) -> str:
    """What an installation depends on: its folder, the extras, the packages and their versions."""
    files = b"".join((ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt"))
    return f"{venv}\n{EXTRAS[level]}\n{hashlib.sha256(files).hexdigest()}\n"


def is_complete(venv: Path, level: str) -> bool:
    """Whether a level is installed as it should be, and its interpreter runs."""
    marker = venv / level
    return marker.is_file() and marker.read_text(encoding="utf-8") == state_of(venv, level) and runs(venv)


def is_usable(venv: Path) -> bool:
    """Whether packages can be added: no change was interrupted, and the folder was not moved since it was made.

    Markers of earlier versions are empty.
    """
    if (venv / UNFINISHED).exists() or not runs(venv):
        return False
    markers = [(venv / level).read_text(encoding="utf-8") for level in EXTRAS if (venv / level).is_file()]
    return all(not marker or marker.startswith(f"{venv}\n") for marker in markers)


def runs(venv: Path) -> bool:
    """Whether the environment has pip and a Python that is new enough."""
    code = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.run([python_of(venv), "-c", code], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def python_of(venv: Path) -> str:
    """The interpreter of the environment."""
    return str(venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def create(venv: Path) -> None:
    """Make an empty environment, in place of an earlier one of this script."""
    venv.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in venv.iterdir()}
    if names and names.isdisjoint({UNFINISHED, *EXTRAS}):
        fail(f"{str(venv)!r} was not made by make and cannot be used; delete it and run make again")
    (venv / UNFINISHED).touch()
    for path in venv.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != UNFINISHED:
            path.unlink()
    done = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, check=False)
    if done.returncode or not runs(venv):
        output = done.stdout + done.stderr
        if "ensurepip is not available" in output:
            fail("this Python cannot make environments; run apt-get install python3-venv, then make again")
        fail(reason(output))


def install(venv: Path, level: str) -> None:
    """Run pip, and record what is installed then."""
    markers = [venv / name for name in EXTRAS]
    for marker in markers:
        if marker.exists():
            marker.rename(marker.with_suffix(".before"))
    (venv / UNFINISHED).touch()
    command = [python_of(venv), "-m", "pip", "install", "--disable-pip-version-check", "--no-color"]
    command += ["--progress-bar=off", "--constraint=constraints.txt", f"--editable=.[{EXTRAS[level]}]"]
    environment = {"PIP_RETRIES": "3", **os.environ}  # by default pip takes a minute to find that there is no network
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=ROOT,
        env=environment,
    ) as pip:
        try:
            lines.extend(pip.stdout or ())
        finally:
            lines.extend(pip.stdout or ())
            code = pip.wait()
            has_changed = any(line.startswith("Installing collected packages") for line in lines)
            for marker in markers:
                before = marker.with_suffix(".before")
                if before.exists() and not has_changed:
                    before.rename(marker)
                elif before.exists():
                    before.unlink()
            if code == 0 or not has_changed:
                (venv / UNFINISHED).unlink()
    if code:
        fail(reason("".join(lines)))
    for name in list(EXTRAS)[: list(EXTRAS).index(level) + 1]:
        (venv / name).write_text(state_of(venv, name), encoding="utf-8")


def reason(output: str) -> str:
    """One line for the output of a program that failed."""
    for sign in FULL:
        if sign in output:
            return f"{sign[0].lower()}{sign[1:]}; free some and run make again"
    if any(sign in output for sign in UNREACHABLE):
        return "the packages cannot be downloaded; check the network connection and run make again"
    lines = [line.partition("ERROR:")[2].strip() for line in output.splitlines() if "ERROR:" in line]
    return f"{(lines or output.strip().splitlines() or ['no output'])[-1]}; fix that and run make again"


def fail(message: str) -> None:
    """End with an error of one line."""
    sys.exit(f"error: {message}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        fail("interrupted; run make again")
    except OSError as problem:
        fail(f"{problem.filename!r}: {problem.strerror}; change that, or clone to a folder that you may write")
