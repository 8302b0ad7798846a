"""The runner of all benchmarks knows each of them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.__main__ import BENCHMARKS

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
PARTS = {"__main__", "kill_left", "kill_writers"}
"""What runs by itself, but is the runner or a process of another benchmark."""


def test_every_script_is_run_and_has_a_short_form() -> None:
    scripts = {path.stem: path for path in FOLDER.glob("*.py")}
    runnable = {name for name, path in scripts.items() if '__name__ == "__main__"' in path.read_text(encoding="utf-8")}
    assert runnable - PARTS == set(BENCHMARKS)
    assert [name for name in BENCHMARKS if '"--quick"' not in scripts[name].read_text(encoding="utf-8")] == []
