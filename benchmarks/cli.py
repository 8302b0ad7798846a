"""CPU-seconds of `import ragistry`, of the peers' imports where they are installed, and of the commands."""

from __future__ import annotations

import argparse
import importlib.util
import resource
import subprocess
import sys
from statistics import median

BARS = {"import ragistry": 0.1, "ragistry --help": 0.3}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one run of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three runs of each instead of nine")
    runs = 3 if parser.parse_args().quick else 9
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import ragistry": [sys.executable, "-c", "import ragistry"],
        "ragistry --help": [sys.executable, "-m", "ragistry", "--help"],
        "ragistry techniques": [sys.executable, "-m", "ragistry", "techniques"],
    }
    for peer in ("chromadb", "langchain_core", "llama_index.core", "haystack", "txtai"):
        try:
            found = importlib.util.find_spec(peer) is not None
        except ModuleNotFoundError:
            found = False
        if found:
            commands[f"import {peer}"] = [sys.executable, "-c", f"import {peer}"]
    # In turn, so that a machine whose speed drifts slows all of them alike.
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs + 1):
        for name, command in commands.items():
            times[name].append(cpu_seconds(command))
    floor = median(times["python -c pass"][1:])
    print("| command | CPU-seconds | above an empty Python | at most |\n|---|--:|--:|--:|")
    for name, values in times.items():
        value = median(values[1:])
        print(f"| `{name}` | {value:.3f} | {value - floor:.3f} | {BARS.get(name, '')} |")


if __name__ == "__main__":
    main()
