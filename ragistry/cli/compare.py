"""``ragistry compare``: which technique is better on these documents, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragistry.cli.options import DebugOption, WorkspaceOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line, print_json, progress_bar

if TYPE_CHECKING:
    from ragistry.evaluation.dataset import Dataset
    from ragistry.evaluation.result import Comparison
    from ragistry.workspace import Workspace


IR_DATASETS = "ir_datasets:"
STDOUT = Path("-")
WIDE = 140
"""Columns of a table that goes to a file or a pipe, where nothing says how much room there is."""


def compare(
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset", help="Folder of a test set in BEIR's layout, or ir_datasets:NAME.", parser=given_path
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Queries for this workspace's own library, as JSON lines.")
    ] = None,
    technique: Annotated[
        list[str] | None,
        typer.Option("--technique", "-t", help="A name of techniques.yaml; again for more (default: all)."),
    ] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="Test each technique against this one.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="As nDCG@10; the first decides; again for more.")
    ] = None,
    grid: Annotated[list[str] | None, typer.Option("--grid", help="Vary a parameter: hybrid.k=10,60.")] = None,
    chunk_size: Annotated[
        str | None,
        typer.Option(
            "--chunk-size",
            help="document, 500, or 500/75 (default: --queries: the library as it is; made sets: as the workspace "
            "cuts; other sets: document).",
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which qrels of the test set.")] = "test",
    depth: Annotated[int | None, typer.Option("--depth", help="Documents of a ranking (default: 100).")] = None,
    drop_query: Annotated[bool, typer.Option("--drop-query", help="Leave out hits with the query's own id.")] = False,
    test: Annotated[Literal["randomisation", "t"], typer.Option("--test", help="Of significance.")] = "randomisation",
    seed: Annotated[int, typer.Option("--seed", help="Of everything that is drawn.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write JSON here; - prints it.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with plots here.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write Markdown here.")] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", help="Folder that keeps answers and TREC runs, to go on from.", parser=given_path),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Folder that keeps vectors and indexes.", parser=given_path)
    ] = None,
    record: Annotated[Path | None, typer.Option("--record", help="Keep every answer of a model in this file.")] = None,
    replay: Annotated[Path | None, typer.Option("--replay", help="Take them from this file; ask no model.")] = None,
    workspace: WorkspaceOption = Path(),
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Compare techniques on a test set: quality with intervals, tests, cost, and where they differ.

    Exit code 1 where a technique failed; the others are compared, and every report is written all the same.
    """
    from ragistry.evaluation import compare as run_comparison
    from ragistry.evaluation.comparison import MEASURES
    from ragistry.evaluation.grid import parse_grid
    from ragistry.evaluation.paths import check_outputs
    from ragistry.workspace import open_workspace

    if (dataset is None) == (queries is None):
        raise typer.BadParameter("give --dataset FOLDER, or --queries FILE for this workspace's own library")
    files = {"json": None if json_file == STDOUT else json_file, "html": html, "markdown": markdown, "record": record}
    check_outputs(files=files, folders={"runs": runs, "cache": cache}, seed=seed)
    with open_workspace(workspace) as opened, progress_bar() as progress:
        comparison = run_comparison(
            technique or _fitting(opened, queries is not None),
            _test_set(opened, dataset, queries, split),
            measure or MEASURES,
            baseline,
            workspace=opened,
            grid=parse_grid(grid or []),
            chunk_size=chunk_size or (None if queries is None else "library"),
            depth=depth,
            drop_query=drop_query,
            test=test,
            seed=seed,
            runs=runs,
            cache=cache,
            record=record,
            replay=replay,
            progress=progress,
        )
    _write(comparison, json_file, html, markdown)
    if json_file != STDOUT:
        _print(comparison)
    kept = _keep(opened, comparison)
    if json_file != STDOUT:
        error_line(f"{kept} (`ragistry ui` shows it)", label="kept")
    if comparison.failures:
        raise typer.Exit(1)


def _fitting(workspace: Workspace, library: bool) -> list[str]:
    """Every technique of the workspace; without a library none that chooses between its collections."""
    from ragistry.techniques.shape import wanted_resources

    names = workspace.registry.names()
    asking = [name for name in names if "library" in wanted_resources(workspace.registry.technique_class(name))]
    if library or not asking:
        return names
    error_line(f"{', '.join(asking)} left out: it chooses between collections, and a test set is one", label="note")
    return [name for name in names if name not in asking]


def _test_set(workspace: Workspace, dataset: Path | None, queries: Path | None, split: str) -> Dataset:
    from ragistry.evaluation import read_beir, read_ir_datasets, read_library

    if queries is not None:
        return read_library(workspace, queries)
    name = str(dataset)
    if name.startswith(IR_DATASETS):
        return read_ir_datasets(name.removeprefix(IR_DATASETS))
    return read_beir(name, split)


def _keep(workspace: Workspace, comparison: Comparison) -> Path:
    """Keep the report in the workspace, for the page; named by when it was made, what was measured, and its hash."""
    import re
    from hashlib import sha256

    text = _as_json(comparison)
    made = re.sub(r"[^0-9T]", "", comparison.provenance["made"].split("+")[0])
    name = re.sub(r"[^\w.-]+", "-", comparison.name)[:60]
    folder = workspace.path_of(workspace.settings.data_dir) / "evaluation" / "reports"
    path = folder / f"{made}-{name}-{sha256(text.encode()).hexdigest()[:8]}.json"
    _save(path, text)
    return path


def _as_json(comparison: Comparison) -> str:
    import json

    return json.dumps(comparison.to_json(), ensure_ascii=False, indent=2) + "\n"


def _write(comparison: Comparison, json_file: Path | None, html: Path | None, markdown: Path | None) -> None:
    if json_file == STDOUT:
        print_json(comparison.to_json())
    elif json_file is not None:
        _save(json_file, _as_json(comparison))
    if html is not None:
        from ragistry.evaluation.report_html import page

        _save(html, page(comparison))
    if markdown is not None:
        from ragistry.evaluation.report_text import markdown as as_markdown

        _save(markdown, as_markdown(comparison))


def _save(path: Path, text: str) -> None:
    from ragistry.errors import EvaluationError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"cannot write {str(path)!r}: {error.strerror}; name another file") from error


def _print(comparison: Comparison) -> None:
    from ragistry.evaluation.notes import notes
    from ragistry.evaluation.report_text import failures, terminal_tables
    from ragistry.evaluation.sheets import conclusion, verdicts
    from ragistry.evaluation.synthetic import cautions, heading

    out = console()
    if not out.is_terminal:
        out.width = WIDE
    if said := heading(comparison.provenance):
        out.print(said, style="bold yellow")
        for caution in cautions(comparison.provenance):
            out.print(f"- {caution}")
    for table in terminal_tables(comparison, out.width):
        out.print(table)
    for verdict in verdicts(comparison):
        out.print(verdict)
    out.print(conclusion(comparison), style="bold")
    for note in notes(comparison):
        out.print(f"- {note}")
    for problem in comparison.problems:
        error_line(problem, label="note")
    for line in failures(comparison):
        error_line(line, label="failed")
