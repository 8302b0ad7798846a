"""``ragistry compare``: compare techniques on a test set or on the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.flags import FlagsError, refuse_all_but, refuse_together, refuse_without
from ragistry.cli.options import DebugOption, WorkspaceOption
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
READ = {
    "--plan": ("plan", "reports", "workspace"),
    "--gate": ("gate", "reports", "min_effect", "markdown", "workspace"),
    "two reports": ("reports", "workspace"),
}
"""Parameters that are read, by what is done instead of a comparison."""
INDEXES = ("chunk_size", "cache")
"""Parameters of indexes and models, which the rankings of other programs do not use."""


def compare(
    context: typer.Context,
    reports: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[A.json B.json]", help="Two reports of --json to compare, instead of a test set; one for --plan."
        ),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset", help="A test set: its folder in BEIR's layout, or ir_datasets:NAME.", parser=given_path
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Queries for the library of this workspace, as JSON lines.")
    ] = None,
    technique: Annotated[
        list[str] | None,
        typer.Option("--technique", "-t", help="A technique of techniques.yaml; repeatable (default: all)."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="NAME=FILE",
            help="Rankings of another program: a TREC run, or the http address of a search endpoint; repeatable.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="Test each technique against this one (default: the default technique)."),
    ] = None,
    margin: Annotated[
        float,
        typer.Option("--margin", help="Keep the baseline if no technique can be better by as much; fix it before."),
    ] = 0.05,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show how many questions a comparison needs, and compare nothing.")
    ] = False,
    gate: Annotated[
        bool,
        typer.Option("--gate", help="Of two reports: exit code 1 if B shows a loss, 2 if it cannot be decided."),
    ] = False,
    min_effect: Annotated[float, typer.Option("--min-effect", help="The smallest loss at which --gate fails.")] = 0.01,
    details: Annotated[bool, typer.Option("--details", help="Print every table, warning and note.")] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="A measure, such as nDCG@10; repeatable. The first decides the verdict."),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", help="Values of a parameter, such as hybrid.fusion=dbsf,rrf; repeatable."),
    ] = None,
    chunk_size: Annotated[
        str | None,
        typer.Option(
            "--chunk-size",
            help="document, 500, or 500/75 (default with --queries: the library as it is; for sets of `testset make`: "
            "the chunks of the library without the words of the queries; for other sets: document).",
        ),
    ] = None,
    embed_model: Annotated[
        list[str] | None,
        typer.Option(
            "--embed-model",
            help="An embedder to compare, such as minilm or folder:./models/mine; repeatable. One index for each.",
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which qrels of the test set to use.")] = "test",
    depth: Annotated[
        int | None, typer.Option("--depth", help="Number of documents in a ranking (default: 100).")
    ] = None,
    drop_query: Annotated[
        bool, typer.Option("--drop-query", help="Remove the result whose id is the query's.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all random choices.")] = 0,
    show_questions: Annotated[
        bool, typer.Option("--show-questions", help="Show the texts of questions that people asked, not only ids.")
    ] = False,
    tune_on: Annotated[
        float | None,
        typer.Option(
            "--tune-on",
            metavar="FRACTION",
            min=0.0,
            max=1.0,
            help="Choose the best variant on this share of the queries, and measure it on the others.",
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write JSON here; - prints it.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with plots here; - prints it.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write Markdown here; - prints it.")] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", help="Folder for TREC runs.", parser=given_path),
    ] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder that keeps indexes.", parser=given_path)] = None,
    answers: Annotated[
        Path | None,
        typer.Option("--answers", help="The file that keeps answers of models (default: one in the workspace)."),
    ] = None,
    no_answers: Annotated[
        bool, typer.Option("--no-answers", help="Ask every model anew, without answers of earlier comparisons.")
    ] = False,
    workspace: WorkspaceOption = Path(),
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Compare techniques on a test set: quality with confidence intervals, significance, and cost.

    The first line says what to do. With two reports, A.json and B.json, compare the same techniques over the queries
    of both; with --gate, the exit code says whether B shows a loss.

    Exit code 1 if a technique failed; the others are compared, and every report is written.
    """
    from ragistry.evaluation import compare as run_comparison
    from ragistry.evaluation.comparison import MEASURES
    from ragistry.evaluation.outputs import check_outputs
    from ragistry.evaluation.systems.variants import CHUNK_SIZE, parse_grid
    from ragistry.workspace import open_workspace

    if mode := "--plan" if plan else "--gate" if gate else "two reports" if reports else "":
        refuse_all_but(context, mode, *READ[mode])
        if plan:
            _print_plan(reports or [])
        else:
            _compare_reports(reports or [], gated=gate, least=min_effect, markdown=markdown)
        return
    refuse_without(context, "gate", "min_effect")
    refuse_together(context, "queries", "split")
    refuse_together(context, "cache", "answers", "no_answers")
    refuse_together(context, "answers", "no_answers")
    if run and not technique:
        refuse_together(context, "run", *INDEXES)
        if not any("=http" in one for one in run):
            refuse_together(context, "run", "answers", "no_answers")
    if (dataset is None) == (queries is None):
        raise typer.BadParameter("give either --dataset FOLDER, or --queries FILE for the library of this workspace")
    outputs = {"json": json_file, "html": html, "markdown": markdown}
    printed = [kind for kind, path in outputs.items() if path == STDOUT]
    if len(printed) > 1:
        raise typer.BadParameter(f"{' and '.join(f'--{kind} -' for kind in printed)} cannot be combined")
    if details and printed:
        raise FlagsError(f"--details cannot be combined with --{printed[0]} -, which has everything")
    files = {kind: path for kind, path in outputs.items() if path is not None and path != STDOUT}
    check_outputs(files={**files, "answers": answers}, folders={"runs": runs, "cache": cache}, seed=seed)
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
            margin=margin,
            workspace=opened,
            grid=varied,
            chunk_size=chunk_size or ("library" if as_it_is else None),
            embed_models=embed_model or (),
            depth=depth,
            drop_query=drop_query,
            seed=seed,
            tune_on=tune_on,
            show_questions=show_questions,
            runs=runs,
            cache=cache,
            answers=answers or not no_answers,
            progress=progress,
        )
    kept = _keep(opened, comparison)
    _write(comparison, files, printed, details=details)
    for path in (*files.values(), *([runs] if runs else [])):
        error_line(str(path), label="wrote")
    if not printed:
        error_line(f"{kept} (`ragistry ui` shows it)", label="kept")
    if comparison.failures:
        raise typer.Exit(1)


def _write(comparison: Comparison, files: Mapping[str, Path], printed: Sequence[str], *, details: bool) -> None:
    """Write the files, and print one of the formats, or the report for a terminal."""
    from ragistry.evaluation.report.content import failures

    for kind, path in files.items():
        _save(path, _text(comparison, kind))
    if not printed:
        _print(comparison, details=details)
        return
    print_text(_text(comparison, printed[0]))
    for line in failures(comparison):
        error_line(line, label="failed")


def _compare_reports(reports: list[Path], *, gated: bool, least: float, markdown: Path | None) -> None:
    """Print how the techniques of the second report differ from those of the first one, and end as a gate does."""
    from ragistry.evaluation import Comparison, changed
    from ragistry.evaluation.changes import NOT_DECIDED, Gate
    from ragistry.evaluation.changes import gate as decide

    if len(reports) != 2:
        raise typer.BadParameter("two reports are compared by: ragistry compare A.json B.json, without a test set")
    if not gated:
        for line in changed(*map(Comparison.from_json, reports)).lines():
            console().print(line)
        return
    try:
        first, second = map(Comparison.from_json, reports)
        found = decide(first, second, least)
    except Exception as error:  # noqa: BLE001, exit code 1 would mean a loss
        found = Gate(NOT_DECIDED, f"Not decided: {' '.join(str(error).split()) or repr(error)}")
    console().print(found.sentence, soft_wrap=True)
    if markdown == STDOUT:
        print_text(found.markdown())
    elif markdown is not None:
        _save(markdown, found.markdown())
    raise typer.Exit(found.code)


def _print_plan(reports: list[Path]) -> None:
    """Print how many questions show a difference, for usual deviations or those of a report."""
    from ragistry.evaluation import Comparison
    from ragistry.evaluation.report.content import plan_table
    from ragistry.evaluation.report.text import print_table

    if len(reports) > 1:
        raise typer.BadParameter("--plan takes the deviation of one report: ragistry compare REPORT.json --plan")
    print_table(plan_table(Comparison.from_json(reports[0]) if reports else None), console())


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


def _test_set(workspace: Workspace, dataset: Path | None, queries: Path | None, split: str) -> Dataset:
    from ragistry.evaluation import read_beir, read_ir_datasets, read_library

    if queries is not None:
        return read_library(workspace, queries)
    name = str(dataset)
    if name.startswith(IR_DATASETS):
        return read_ir_datasets(name.removeprefix(IR_DATASETS))
    return read_beir(name, split)


def _keep(workspace: Workspace, comparison: Comparison) -> Path:
    """Save the report in the workspace, so that the page shows it."""
    from ragistry.evaluation.outputs import keep_report

    folder = workspace.path_of(workspace.settings.data_dir) / EVALUATION / "reports"
    return keep_report(folder, comparison.to_json())


def _text(comparison: Comparison, kind: str) -> str:
    """Return the report as JSON, HTML or Markdown."""
    import json

    from ragistry.evaluation import markdown, page

    if kind == "json":
        return json.dumps(comparison.to_json(), ensure_ascii=False, indent=2) + "\n"
    return page(comparison) if kind == "html" else markdown(comparison)


def _save(path: Path, text: str) -> None:
    from ragistry.errors import EvaluationError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"cannot write {str(path)!r}: {error.strerror}; choose another file") from error


def _print(comparison: Comparison, *, details: bool) -> None:
    import os

    from ragistry.evaluation.report.text import print_report

    out = console()
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = WIDE
    print_report(comparison, out, wrap=out.is_terminal, details=details)
