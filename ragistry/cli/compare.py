"""``ragistry compare``: compare techniques on a test set or on the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.flags import FlagsError, refuse_together
from ragistry.cli.options import WorkspaceOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line, print_text, progress_bar
from ragistry.config.folder import EVALUATION

if TYPE_CHECKING:
    from ragistry.evaluation.data.dataset import Dataset
    from ragistry.evaluation.result import Comparison
    from ragistry.workspace import Workspace


IR_DATASETS = "ir_datasets:"
STDOUT = Path("-")
WIDE = 140
"""Width of tables in a file or a pipe."""


def compare(
    context: typer.Context,
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset", help="A test set: its folder in BEIR's layout, or ir_datasets:NAME.", parser=given_path
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Queries for the library of this workspace, as JSON lines.")
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Which qrels of a folder to use (default: test).")
    ] = None,
    technique: Annotated[
        list[str] | None,
        typer.Option("--technique", "-t", metavar="NAME", help="A technique; repeatable (default: all)."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run", metavar="NAME=FILE", help="A TREC run, or the http address of a search endpoint; repeatable."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="Test against this one (default: the default technique)."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option("--margin", help="Keep the baseline if none can be better by as much (default: 0.05)."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", metavar="NAME", help="Such as nDCG@10; repeatable. The first decides."),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", metavar="TEXT", help="Values to try: hybrid.fusion=dbsf,rrf; repeatable."),
    ] = None,
    tune_on: Annotated[
        float | None,
        typer.Option(
            "--tune-on",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Choose the best variant on this share of the queries, measure it on the others.",
        ),
    ] = None,
    chunk_size: Annotated[
        str | None,
        typer.Option("--chunk-size", help="document, 500, 500/75 or library (default: by the test set)."),
    ] = None,
    embed_model: Annotated[
        list[str] | None,
        typer.Option("--embed-model", metavar="NAME", help="An embedder: minilm, folder:./models/mine; repeatable."),
    ] = None,
    depth: Annotated[int | None, typer.Option("--depth", help="Documents in a ranking (default: 100).")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all random choices.")] = 0,
    details: Annotated[bool, typer.Option("--details", help="Print every table, warning and note.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write JSON here; - prints it.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with plots here; - prints it.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write Markdown here; - prints it.")] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="Folder for TREC runs.", parser=given_path)] = None,
    answers: Annotated[
        Path | None, typer.Option("--answers", help="Keep answers of models here, not in the workspace.")
    ] = None,
    no_answers: Annotated[bool, typer.Option("--no-answers", help="Ask every model anew.")] = False,
    workspace: WorkspaceOption = Path(),
) -> None:
    """Compare techniques on a test set: quality with confidence intervals, significance, and cost.

    The first line says what to do. Exit code 1 if a technique failed; the others are compared, and every report is
    written.
    """
    from ragistry.evaluation import compare as run_comparison
    from ragistry.evaluation.comparison import MEASURES
    from ragistry.evaluation.outputs import check_outputs, keep_report, write_runs
    from ragistry.evaluation.result import MARGIN
    from ragistry.evaluation.systems.variants import CHUNK_SIZE, parse_grid
    from ragistry.workspace import open_workspace

    refuse_together(context, "queries", "dataset", "split")
    refuse_together(context, "answers", "no_answers")
    if run and not technique:
        refuse_together(context, "run", "chunk_size", "embed_model", "grid")
        if not any("=http" in one for one in run):
            refuse_together(context, "run", "answers", "no_answers")
    if dataset is None and queries is None:
        raise typer.BadParameter("give either --dataset FOLDER, or --queries FILE for the library of this workspace")
    if split and str(dataset).startswith(IR_DATASETS):
        raise FlagsError(f"--split cannot be combined with --dataset {dataset}, whose name says the split")
    if len([*(technique or []), *(run or [])]) == 1 and not (grid or embed_model):
        for option, value in (("--margin", margin), ("--tune-on", tune_on)):
            if value is not None:
                raise FlagsError(f"{option} does nothing with one technique; add another one, or --grid")
    outputs = {"json": json_file, "html": html, "markdown": markdown}
    printed = [kind for kind, path in outputs.items() if path == STDOUT]
    if len(printed) > 1:
        raise typer.BadParameter(f"{' and '.join(f'--{kind} -' for kind in printed)} cannot be combined")
    if details and printed:
        raise FlagsError(f"--details cannot be combined with --{printed[0]} -, which has everything")
    files = {kind: path for kind, path in outputs.items() if path is not None and path != STDOUT}
    check_outputs(files={**files, "answers": answers}, folders={"runs": runs}, seed=seed)
    varied = parse_grid(grid or [])
    with open_workspace(workspace) as opened, progress_bar() as progress:
        tested = _test_set(opened, dataset, queries, split)
        by_people = queries is not None and not tested.synthetic
        as_it_is = by_people and not embed_model and CHUNK_SIZE not in varied
        comparison = run_comparison(
            _contenders(technique or ([] if run else _all(opened, on_library=queries is not None)), run or []),
            tested,
            measure or MEASURES,
            baseline,
            margin=MARGIN if margin is None else margin,
            workspace=opened,
            grid=varied,
            chunk_size=chunk_size or ("library" if as_it_is else None),
            embed_models=embed_model or (),
            depth=depth,
            seed=seed,
            tune_on=tune_on,
            answers=answers or not no_answers,
            progress=progress,
        )
    reports = opened.path_of(opened.settings.data_dir) / EVALUATION / "reports"  # the page shows them
    kept = keep_report(reports, comparison.to_json())
    _write(comparison, files, printed, details=details)
    if runs is not None:
        write_runs(runs, comparison.runs, comparison.failures)
    for path in (*files.values(), *([runs] if runs else [])):
        error_line(str(path), label="wrote")
    if not printed:
        error_line(f"{kept} (`ragistry ui` shows it)", label="kept")
    if comparison.failures:
        raise typer.Exit(1)


def _write(comparison: Comparison, files: Mapping[str, Path], printed: Sequence[str], *, details: bool) -> None:
    """Write the files, and print one of the formats, or the report for a terminal."""
    from ragistry.evaluation.outputs import write_text
    from ragistry.evaluation.report.content import failures

    for kind, path in files.items():
        write_text(path, _text(comparison, kind))
    if not printed:
        _print(comparison, details=details)
        return
    print_text(_text(comparison, printed[0]))
    for line in failures(comparison):
        error_line(line, label="failed")


def _contenders(techniques: list[str], runs: list[str]) -> dict[str, Any]:
    """Map the name of each technique to None, and that of each run to its rankings or its endpoint."""
    from ragistry.evaluation import as_technique, read_run

    found: dict[str, Any] = dict.fromkeys(techniques)
    for one in runs:
        name, equals, file = one.partition("=")
        if not equals or not name or not file:
            raise typer.BadParameter(f"--run must be NAME=FILE, such as --run theirs=their.run; got {one!r}")
        if name in found:
            raise typer.BadParameter(f"two contenders are called {name!r}; rename one")
        found[name] = as_technique(file) if file.startswith(("http://", "https://")) else read_run(file)
    return found


def _all(workspace: Workspace, *, on_library: bool) -> list[str]:
    """List every technique that can be compared, and report those that are left out."""
    from ragistry.evaluation.systems.systems import comparable

    names, routed = comparable(workspace.registry, on_library=on_library)
    if routed:
        error_line(f"left out {', '.join(routed)}, because a test set has a single collection", label="note")
    if line := workspace.registry.removed:
        error_line(line, label="note")
    return names


def _test_set(workspace: Workspace, dataset: Path | None, queries: Path | None, split: str | None) -> Dataset:
    from ragistry.evaluation import read_beir, read_ir_datasets, read_library

    if queries is not None:
        return read_library(workspace, queries)
    name = str(dataset)
    if name.startswith(IR_DATASETS):
        return read_ir_datasets(name.removeprefix(IR_DATASETS))
    return read_beir(name, split or "test")


def _text(comparison: Comparison, kind: str) -> str:
    """Return the report as JSON, HTML or Markdown."""
    import json

    from ragistry.evaluation import markdown, page

    if kind == "json":
        return json.dumps(comparison.to_json(), ensure_ascii=False, indent=2) + "\n"
    return page(comparison) if kind == "html" else markdown(comparison)


def _print(comparison: Comparison, *, details: bool) -> None:
    import os

    from ragistry.evaluation.report.text import print_report

    out = console()
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = WIDE
    print_report(comparison, out, wrap=out.is_terminal, details=details)
