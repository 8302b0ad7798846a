"""``ragistry repo``: documentation repositories, the Markdown of Git clones, each in its own store."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.command import Output, command_group, on_any_folder
from ragistry.cli.confirm import YesOption, confirm
from ragistry.cli.flags import refuse_together
from ragistry.cli.options import ResultOption, TechniqueOption, TopKOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line, progress_bar
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.library.contract import CollectionInfo
    from ragistry.library.repositories.repository import Repositories, RepositoryReport
    from ragistry.workspace import Workspace

SHOWN = 5
"""Maximum number of printed warnings of a repository; section pages without text are common."""

app = command_group("Documentation repositories: Git clones of Markdown trees.")
NameArgument = Annotated[str, typer.Argument(help="Name of the repository.")]


@app.command()
@on_any_folder()
def add(
    opened: Workspace,
    as_json: bool,
    path: Annotated[Path, typer.Argument(help="Folder of a Git clone, or a folder in one.", parser=given_path)],
    name: Annotated[
        str | None, typer.Option("--name", "-n", help="Lower-case letters, digits, '-' (default: the folder's name).")
    ] = None,
    description: Annotated[
        str | None, typer.Option("--description", help="What it is about (default: from its front page).")
    ] = None,
) -> Output:
    """Index the Markdown of a clone as committed, at the commit that is checked out.

    Exit code 1 if a file could not be indexed.
    """
    with progress_bar(not as_json) as progress:
        report = opened.repositories.add(path, name, description, progress)
    return _told([report], {})


@app.command("list")
@on_any_folder()
def list_(opened: Workspace) -> Output:
    """Show every repository with its commit and totals."""
    infos = opened.repositories.infos()

    def write() -> None:
        for info in infos:
            console().print(_line(info))
        if not infos:
            error_line("no repositories; add one with `ragistry repo add PATH`", label="note")

    return Output({"repositories": [_as_json(info) for info in infos]}, write)


@app.command()
@on_any_folder()
def update(
    opened: Workspace,
    as_json: bool,
    names: Annotated[list[str] | None, typer.Argument(help="Names (default: all).", show_default=False)] = None,
) -> Output:
    """Index what changed since the recorded commit. Run `git pull` in the clone first; this command does not fetch.

    Searches use the old version until the update is complete. Exit code 1 if a file or a repository failed.
    """
    from ragistry.errors import RagistryError

    reports, failed = [], {}
    repositories = opened.repositories
    for name in names or [info.name for info in repositories.infos()]:
        try:
            with progress_bar(not as_json) as progress:
                reports.append(repositories.update(name, progress))
        except RagistryError as error:
            if names is not None and len(names) == 1:
                raise
            failed[name] = str(error)
    return _told(reports, failed)


@app.command()
@on_any_folder()
def remove(
    opened: Workspace,
    name: NameArgument,
    yes: YesOption = False,
) -> Output:
    """Remove a repository from the workspace; the clone is not touched."""
    repositories = opened.repositories
    confirm(f"repository {name!r} with {_size(repositories, name)}", yes)
    chunks = repositories.remove(name)
    return Output({"removed": name, "chunks": chunks}, f"{name}: removed, {numbered(chunks, 'chunk[|s]')}")


def _size(repositories: Repositories, name: str) -> str:
    """Return the size; an unreadable repository must still be removable."""
    from ragistry.errors import StoreCorruptError

    try:
        return numbered(repositories.collection(name).count(), "chunk[|s]")
    except StoreCorruptError:
        return "a damaged store"


@app.command()
@on_any_folder((refuse_together, "as_json", "number"))
def search(
    opened: Workspace,
    name: NameArgument,
    query: Annotated[str, typer.Argument(help="The query.")],
    technique: TechniqueOption = None,
    top_k: TopKOption = None,
    number: ResultOption = None,
) -> Output:
    """Search one repository and print the best passages."""
    from ragistry.cli.search import print_documents
    from ragistry.library.repositories.repository import RepositoryTechnique, search_repository
    from ragistry.presentation.plain import as_mapping

    over = partial(opened.technique_over, name=technique)
    chosen = RepositoryTechnique(opened.repositories.collection(name), over)
    limit = opened.settings.n_results if top_k is None else top_k
    result = search_repository(chosen, query, limit)

    def write() -> None:
        print_documents(opened, query, result.documents, number=number, more="--result")
        if not result.documents:
            error_line("nothing found", label="note")

    return Output(as_mapping(result, opened.settings.language), write)


def _told(reports: list[RepositoryReport], failed: dict[str, str]) -> Output:
    def write() -> None:
        for report in reports:
            _print(report)
        for name, reason in failed.items():
            error_line(f"{name}: {reason}", label="failed")

    values = {"repositories": [_report_as_json(report) for report in reports], "failed": failed}
    return Output(values, write, int(bool(failed) or any(report.files.failed for report in reports)))


def _report_as_json(report: RepositoryReport) -> dict[str, Any]:
    files = asdict(report.files)
    files["failed"] = [{"source": failure.source, "error": failure.error} for failure in report.files.failed]
    return _as_json(report.info) | files | {"renamed": report.renamed}


def _as_json(info: CollectionInfo) -> dict[str, Any]:
    return {"name": info.name, "chunk_count": info.chunk_count, "metadata": info.metadata}


def _print(report: RepositoryReport) -> None:
    files = report.files
    for warning in files.warnings[:SHOWN]:
        error_line(warning, label="warning")
    if len(files.warnings) > SHOWN:
        error_line(f"and {len(files.warnings) - SHOWN} more; --json has all", label="warning")
    for failure in files.failed:
        error_line(failure.error, label="failed")
    words = ("added", "updated", "skipped", "deleted", "failed")
    counts = ", ".join(f"{len(getattr(files, word))} {word}" for word in words)
    console().print(f"{_line(report.info)}: {counts}, {len(report.renamed)} renamed ({files.embedded} embedded)")


def _line(info: CollectionInfo) -> str:
    metadata = info.metadata
    pages = numbered(int(metadata.get("total_documents", 0)), "page[|s]")
    commit = str(metadata.get("commit_hash", ""))[:12]
    chunks = numbered(info.chunk_count, "chunk[|s]")
    return f"{info.name}  {commit}  {pages}, {chunks}  {metadata.get('repository_url', '')}"
