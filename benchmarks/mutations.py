"""Measure how many of 60 small faults in the product the test suite finds.

    python -m benchmarks.mutations --map FILE [--workers N]
    python -m benchmarks.mutations --coverage FILE [--out RESULTS] [--quick]
    python -m benchmarks.mutations --choose

Each mutation flips a comparison or boolean operator, replaces a statement by ``pass``, or changes a constant.
`mutations.json` contains them as text, so the same mutations apply after other lines or the tests have changed;
``--choose`` chooses them again. ``--map`` records which tests reach which lines (``FILE``) and how long each test takes
(``FILE.txt``). Each mutation then runs only the tests that reach its line, the shortest first, for three minutes at
most. If the set-up or teardown of a test reaches the line, all tests of its file run, because fixtures may be shared.

A mutation is killed if a test fails that passes on the unchanged code; otherwise it survives. Without ``--map`` and
``--coverage`` the map is temporary. A run that has ``--out`` continues where the last one stopped.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from math import log2
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from coverage import CoverageData

from benchmarks.mutations_choice import PLACES, Mutation, choose

MUTATIONS = Path(__file__).with_suffix(".json")
SECONDS, TEST_SECONDS = 180.0, 60
QUICK = {place: PLACES[place] for place in ("ragistry/library/ingest", "ragistry/techniques/hybrid.py")}
SHORT = 0.05
"""Seconds; the map contains no duration of a shorter test."""


class Result(NamedTuple):
    """``killer``: the test that failed, or empty. ``note``: why no test failed. ``tests``: how many were to run."""

    killer: str
    note: str
    tests: int
    seconds: float


class Map:
    """Which tests reach a line, and their order."""

    def __init__(self, coverage: Path, known: list[str]) -> None:
        self.data = CoverageData(str(coverage))
        self.data.read()
        self.by_file = defaultdict[str, list[str]](list)
        for test in known:
            self.by_file[test.partition("::")[0]].append(test)
        self.known = set(known)
        self.seconds = defaultdict[str, float](float)
        durations = Path(f"{coverage}.txt")
        for line in durations.read_text(encoding="utf-8").splitlines() if durations.exists() else []:
            if match := re.fullmatch(r"([\d.]+)s (?:setup|call|teardown) +(tests/.+)", line.strip()):
                self.seconds[match[2]] += float(match[1])

    def tests(self, file: str, text: str, line: int, folder: str) -> list[str]:
        """The tests that reach a line, or its statement if the tracer saw no event of the line itself."""
        measured = [name for name in self.data.measured_files() if name.endswith(f"/{file}")]
        contexts = self.data.contexts_by_lineno(measured[0]) if measured else {}
        numbers = [line] if contexts.get(line) else _statement(ast.parse(text), line)
        reached = set[str]()
        for test, _, phase in (name.rpartition("|") for number in numbers for name in contexts.get(number, [])):
            reached.update([test] if phase == "run" else self.by_file[test.partition("::")[0]])

        def order(test: str) -> tuple[int, bool, str]:
            """Tests of about equal duration stay together with their file, which shares fixtures."""
            seconds = max(self.seconds[test], SHORT)
            return int(log2(seconds / SHORT)), not test.startswith(f"{folder}/"), test

        return sorted(reached & self.known, key=order)


def _statement(tree: ast.Module, line: int) -> list[int]:
    """The lines of the innermost statement at a line, without the body of a compound statement."""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line]
    node = max((node for node in around if line <= (node.end_lineno or 0)), key=lambda node: node.lineno)
    inner = [child.lineno for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
    return list(range(node.lineno, min([*inner, (node.end_lineno or 0) + 1])))


def run_pytest(folder: Path, *arguments: str, output: Path, seconds: float | None = None) -> int | None:
    """Run pytest in a copy of the tree; returns its exit code, or None if it was stopped after ``seconds``."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    with output.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # Fixtures then stop the servers that they started.
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return None


def copy(tree: Path, folder: Path) -> Path:
    left_out = shutil.ignore_patterns(
        ".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "build", "dist", "results"
    )
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(tree, folder, ignore=left_out))


class Bench:
    """Two copies of a tree: ``clean``, and ``mutated``, which is made again for each mutation."""

    def __init__(self, tree: Path, scratch: Path, seconds: float = SECONDS) -> None:
        self.tree, self.scratch, self.seconds = tree, scratch, seconds
        self.clean, self.mutated, self.output = copy(tree, scratch / "clean"), scratch / "mutated", scratch / "out.txt"

    def collect(self) -> list[str]:
        run_pytest(self.clean, "--collect-only", output=self.output)
        return [line for line in self.output.read_text(encoding="utf-8").splitlines() if "::" in line]

    def map(self, coverage: Path, workers: str, folders: Iterable[str]) -> None:
        """Run the suite, and write which tests reach which lines, and the duration of each test."""
        settings = self.scratch / "coverage.ini"
        include = "\n".join(f"    */{place}{'' if place.endswith('.py') else '/*'}" for place in PLACES)
        unused = "disable_warnings = no-data-collected,module-not-imported"
        settings.write_text(f"[run]\ndata_file = {coverage}\nconcurrency = thread\n{unused}\ninclude =\n{include}\n")
        cov = ["-p", "pytest_cov", "--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
        times = ["--durations=0", f"--durations-min={SHORT}"]
        run_pytest(self.clean, "-n", workers, *cov, *times, *folders, output=self.output)
        shutil.copy(self.output, f"{coverage}.txt")  # Not earlier: coverage removes files with this prefix.
        if not coverage.exists():
            raise SystemExit(f"pytest wrote no coverage; see {coverage}.txt")

    def run(self, folder: Path, tests: list[str], seconds: float) -> tuple[int | None, str]:
        """Run tests until one fails; returns the exit code, and the test that failed or what else pytest said."""
        arguments = self.scratch / "tests.txt"
        arguments.write_text("\n".join(tests), encoding="utf-8")
        options = ["-x", "-rfE", "--tb=no", "-o", f"timeout={TEST_SECONDS}", "--hypothesis-seed=0"]
        basetemp = f"--basetemp={self.scratch / 't'}"
        code = run_pytest(folder, *options, basetemp, f"@{arguments}", output=self.output, seconds=seconds)
        lines = self.output.read_text(encoding="utf-8", errors="replace").splitlines()
        failed = [line.partition(" ")[2] for line in lines if line.startswith(("FAILED ", "ERROR "))]
        known = [test for line in failed for test in tests if f"{line} ".startswith(f"{test} ")]
        return code, max(known, key=len) if known else (failed or lines or ["no output"])[-1]

    def try_out(self, mutation: Mutation, reach: Map) -> Result:
        """Run the tests of a mutation until one fails that passes on the clean copy."""
        text = (self.clean / mutation.file).read_text(encoding="utf-8")
        try:
            tests = reach.tests(mutation.file, text, mutation.line_in(text), PLACES[mutation.place])
        except LookupError as error:
            return Result("", str(error), 0, 0.0)
        copy(self.tree, self.mutated)
        (self.mutated / mutation.file).write_text(mutation.apply(text), encoding="utf-8")
        total, left, spent, note = len(tests), tests, 0.0, "all tests pass" if tests else "no test reaches the line"
        while left:
            start = perf_counter()
            code, failed = self.run(self.mutated, left, self.seconds - spent)
            spent += perf_counter() - start
            if code == 0:
                break
            if code is None or spent >= self.seconds:
                note = f"no failure in {self.seconds:.0f} s"
                break
            suspects = [failed] if failed in left else left  # Without a test's name, an import failed or Python died.
            again, flaky = self.run(self.clean, suspects, self.seconds)
            if again in (0, None):
                return Result(failed, "", total, spent)
            left = left[left.index(flaky) + 1 :] if flaky in left else []
        return Result("", note, total, spent)


def load(path: Path) -> list[Mutation]:
    return [Mutation(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def save(path: Path, rows: object) -> None:
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def print_table(results: dict[Mutation, Result]) -> None:
    print("\n| place | mutations | killed | share | seconds |\n|---|--:|--:|--:|--:|")
    for place in (*PLACES, ""):
        rows = [result for mutation, result in results.items() if mutation.file.startswith(place)]
        if rows:
            killed = sum(bool(row.killer) for row in rows)
            seconds = sum(row.seconds for row in rows)
            print(f"| {place or 'total'} | {len(rows)} | {killed} | {killed / len(rows):.0%} | {seconds:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path.cwd(), help="the checkout whose code and tests run [.]")
    parser.add_argument("--choose", action="store_true", help="choose the mutations again, and stop")
    parser.add_argument("--map", type=Path, metavar="FILE", help="write the map of lines to tests, and stop")
    parser.add_argument("--workers", default="auto", help="pytest processes that make the map [auto]")
    parser.add_argument("--coverage", type=Path, metavar="FILE", help="a map that --map wrote from the same tree")
    parser.add_argument("--out", type=Path, metavar="RESULTS", help="a JSON file; mutations that it contains are done")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="longest run of a mutation [180]")
    parser.add_argument("--quick", action="store_true", help="two mutations, with the tests of their folders")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Tests of Ctrl+C fail if a shell's `&` made us ignore it.
    tree = options.tree.resolve()
    if options.choose:
        save(MUTATIONS, [asdict(mutation) for mutation in choose(tree)])
        return
    numbers = {mutation: number for number, mutation in enumerate(load(MUTATIONS), 1)}
    chosen = list(numbers)
    if options.quick:
        chosen = list({mutation.place: mutation for mutation in chosen if mutation.place in QUICK}.values())
    results: dict[Mutation, Result] = {}
    if options.out and options.out.exists():
        rows = json.loads(options.out.read_text(encoding="utf-8"))
        results = {Mutation(**row["mutation"]): Result(**row["result"]) for row in rows}
    with tempfile.TemporaryDirectory(prefix="mutations-") as scratch:
        bench = Bench(tree, Path(scratch), options.seconds)
        coverage = (options.map or options.coverage or Path(scratch) / "coverage").resolve()
        if not options.coverage:
            bench.map(coverage, options.workers, QUICK.values() if options.quick else ["tests"])
        if options.map:
            return
        reach = Map(coverage, bench.collect())
        for mutation in chosen:
            if mutation not in results:
                results[mutation] = bench.try_out(mutation, reach)
                if options.out:
                    save(options.out, [{"mutation": asdict(m), "result": r._asdict()} for m, r in results.items()])
            killer, note, tests, seconds = results[mutation]
            outcome = f"killed by {killer}" if killer else f"survived: {note}"
            change = f"{mutation.file} {mutation.function}: {mutation.kind} {mutation.old!r} -> {mutation.new!r}"
            print(f"{numbers[mutation]:2} {change}: {outcome} ({tests} tests, {seconds:.0f} s)", flush=True)
        print_table({mutation: results[mutation] for mutation in chosen})


if __name__ == "__main__":
    main()
