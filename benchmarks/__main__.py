"""Every benchmark, one after the other: ``python -m benchmarks [--quick] [--only NAME …] [--out FILE]``.

What they print is written to one Markdown file, with the machine, the versions and the date; the table of `engines`,
with all ratios against other engines, is printed too. One that fails is reported, and the others go on; the exit code
is then 1. What a benchmark needs and this machine lacks (data, a browser) makes that one fail, with its own message.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TextIO

REPOSITORY = Path(__file__).resolve().parents[1]
BENCHMARKS = (
    "engines", "embedder", "runtimes", "reading", "lines", "local_store", "postgres_store", "scale", "capacity",
    "kill", "serve_load", "fuzz", "scifact", "quality", "techniques", "generators", "shown", "support",
    "fusion", "graph", "sparse", "spellings", "names", "statistics", "made", "verdicts", "judging", "contenders",
    "ray_ingest",
)  # fmt: skip
PACKAGES = ("ragistry", "chromadb", "numpy", "onnxruntime", "tantivy", "tokenizers", "pocketflow", "pydantic")
HOUR = 3_600.0


class Outcome(NamedTuple):
    """How a benchmark ended: what it printed, why it failed (empty: it did not), and seconds."""

    name: str
    printed: str
    failure: str
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the short form of each")
    parser.add_argument(
        "--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME", help=f"of {', '.join(BENCHMARKS)}"
    )
    parser.add_argument("--out", type=Path, help="the file [benchmarks/results/DATE.md]")
    parser.add_argument("--timeout", type=float, default=3 * HOUR, help="seconds for each benchmark [10800]")
    options = parser.parse_args()
    began = datetime.now(UTC)
    out = options.out or REPOSITORY / "benchmarks" / "results" / f"{began:%Y-%m-%d-%H%M%S}.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    with out.open("w", encoding="utf-8") as page:
        write(page, heading(began, quick=options.quick))
        for name in options.only:
            print(f"{name} …", file=sys.stderr, flush=True)
            outcome = run(name, quick=options.quick, timeout=options.timeout)
            write(page, section(outcome))
            if name == "engines":
                print(outcome.printed)
            if outcome.failure:
                failed.append(name)
                print(f"{name} failed: {outcome.failure}", file=sys.stderr)
        write(page, f"\n{len(options.only) - len(failed)} of {len(options.only)} benchmarks ran{_named(failed)}.\n")
    print(out)
    sys.exit(1 if failed else 0)


def write(page: TextIO, text: str) -> None:
    """What is measured is on disk before the next benchmark begins."""
    page.write(text)
    page.flush()


def heading(began: datetime, *, quick: bool) -> str:
    """The date, the machine and the versions."""
    rows = {
        "date": f"{began:%Y-%m-%d %H:%M} UTC",
        "run": "quick" if quick else "whole",
        "commit": commit(),
        "machine": f"{platform.system()} {platform.release()}, {platform.machine()}, {processor()}",
        "cores": f"{os.cpu_count()}",
        "load when it began": ", ".join(f"{load:.1f}" for load in os.getloadavg()),
        "memory": memory(),
        "Python": platform.python_version(),
        **{package: installed(package) for package in PACKAGES},
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return f"# Benchmarks of Ragistry\n\n| | |\n|---|---|\n{table}\n"


def run(name: str, *, quick: bool, timeout: float) -> Outcome:
    """One benchmark in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if quick else [])]
    start = perf_counter()
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        printed = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        return Outcome(name, printed, f"not done after {timeout:.0f} s", perf_counter() - start)
    lines = done.stderr.strip().splitlines() or ["no message"]
    failure = f"exit code {done.returncode}: {lines[-1]}" if done.returncode else ""
    return Outcome(name, done.stdout, failure, perf_counter() - start)


def section(outcome: Outcome) -> str:
    failure = f"**Failed:** {outcome.failure}\n\n" if outcome.failure else ""
    return f"\n## {outcome.name}\n\n{failure}{outcome.printed.strip()}\n\n({outcome.seconds:.0f} s)\n"


def commit() -> str:
    """Which state of the repository is measured."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    return told.stdout.strip() or "no repository"


def processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "processor not known"


def memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.1f} GB"


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _named(failed: list[str]) -> str:
    return f"; failed: {', '.join(failed)}" if failed else ""


if __name__ == "__main__":
    main()
