"""``ragistry doctor``: check the parts of a workspace, with a remedy for each problem."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import typer

from ragistry.cli.collections import orphans
from ragistry.cli.options import JsonOption, WorkspaceOption
from ragistry.cli.output import console, print_json
from ragistry.errors import ModelError, RagistryError
from ragistry.utils.installation import install_command
from ragistry.utils.wording import agreeing, listed, numbered, one_line

if TYPE_CHECKING:
    from ragistry.library.remote.technique import ArchiveTechnique
    from ragistry.models.registry import Models
    from ragistry.protocols import LibraryStore
    from ragistry.readers.formats import AddedReader
    from ragistry.workspace import Workspace

PACKAGES = ("onnxruntime", "tokenizers", "numpy", "pocketflow", "pypdfium2", "pydantic")
OPTIONAL_PACKAGES = ("chromadb", "psycopg", "ray")
"""Packages of extras whose versions are printed if they are installed."""
CHUNKS_READ = 500
"""Number of chunks of a collection that are sampled for its language."""
State = Literal["ok", "off", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check.

    ``off``: not available, and not needed by this configuration. ``warning``: works, with a remark.
    """

    name: str
    state: State
    detail: str


def doctor(
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Check the configuration, the models, the store and Ollama. Exit code 1 if a needed part fails.

    Also names sources whose files are gone.
    """
    from ragistry.config.resolve import unknown_variables

    useless = [CheckResult("environment", "warning", line) for line in unknown_variables(os.environ)]
    findings = [_versions(), *useless, *_try_workspace(workspace)]
    if as_json:
        print_json({"findings": [{"name": f.name, "state": f.state, "detail": f.detail} for f in findings]})
    else:
        _print(findings)
    if any(finding.state == "failed" for finding in findings):
        raise typer.Exit(1)


def _versions() -> CheckResult:
    found = []
    for package in ("ragistry", *PACKAGES, *OPTIONAL_PACKAGES):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            if package in OPTIONAL_PACKAGES:
                continue
            return CheckResult("versions", "failed", f"{package} is not installed; run: {install_command()}")
    return CheckResult("versions", "ok", f"Python {platform.python_version()} on {sys.platform}, {', '.join(found)}")


def _try_workspace(path: Path) -> list[CheckResult]:
    from ragistry.workspace import open_workspace

    try:
        opened = open_workspace(path)
    except RagistryError as error:
        return [CheckResult("configuration", "failed", str(error))]
    with opened:
        model = _try("model", partial(_timed, lambda: _embed(opened)))
        store = _store(opened, with_model=model.state == "ok")
        return [
            CheckResult("configuration", "ok", f"{opened.root.resolve()}"),
            *_techniques(opened, with_store=store.state == "ok"),
            *_readers(opened),
            model,
            *_models(opened),
            store,
            *_repositories(opened, with_model=model.state == "ok"),
            *_archives(opened),
            *_names(opened),
            *(_orphaned(opened) if store.state != "off" else ()),
            *((*_missing_sources(opened), *_unsearchable(opened), *_languages(opened)) if store.state == "ok" else ()),
            _ollama(opened),
        ]


def _try(name: str, check: Callable[[], str]) -> CheckResult:
    try:
        return CheckResult(name, "ok", check())
    except (RagistryError, OSError) as error:
        return CheckResult(name, "failed", str(error))


def _timed(check: Callable[[], str]) -> str:
    start = perf_counter()
    return f"{check()} ({(perf_counter() - start) * 1000:,.0f} ms)"


def _models(opened: Workspace) -> list[CheckResult]:
    """Ask each generator and reranker of models.yaml once."""
    models = opened.models
    return [
        *(_answer(f"generator {name}", partial(_generate, models, name)) for name in models.generators),
        *(_answer(f"reranker {name}", partial(_rerank, models, name)) for name in models.rerankers),
    ]


def _answer(name: str, ask: Callable[[], str]) -> CheckResult:
    try:
        return _try(name, partial(_timed, ask))
    except Exception as error:  # noqa: BLE001, the class may be the user's own and raise anything
        return CheckResult(name, "failed", f"raised {type(error).__name__}: {one_line(str(error))}")


def _generate(models: Models, name: str) -> str:
    answer = models.generators[name].generate("Answer with one word: what is the capital of France?")
    return f"answers {one_line(answer, 40)!r}"


def _rerank(models: Models, name: str) -> str:
    scores = models.rerankers[name].rerank("the capital of France", ["Paris", "tea"])
    if len(scores) != 2:
        raise ModelError(f"asked for 2 scores, got {scores!r:.100}")
    return "answers"


def _embed(opened: Workspace) -> str:
    fingerprint = opened.embedder.fingerprint
    opened.embedder.embed(["a question"], role="query")
    return f"{fingerprint.model} ({fingerprint.provider}), {fingerprint.dimension} dimensions"


def _store(opened: Workspace, *, with_model: bool) -> CheckResult:
    """Does not create a missing store."""
    from ragistry.config.folder import missing

    try:
        problem = missing(opened.root, opened.settings)
    except RagistryError as error:
        return CheckResult("store", "failed", str(error))
    if problem:
        return CheckResult("store", "off", problem)
    return _try("store", lambda: _count(opened, with_model=with_model))


def _count(opened: Workspace, *, with_model: bool) -> str:
    """``with_model``: also check that the vectors come from this model."""
    from ragistry.utils.fingerprints import check_embedder

    store = opened.store
    if with_model:
        check_embedder(store, opened.embedder.fingerprint)
    sources = store.sources()
    return f"{numbered(len(sources), 'source[|s]')}, {numbered(sum(info.chunks for info in sources), 'chunk[|s]')}"


def _techniques(opened: Workspace, *, with_store: bool) -> list[CheckResult]:
    """List the usable techniques and the reasons of the others; a broken plugin or default search is a failure."""
    registry = opened.registry
    reasons: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for name in registry.names() if with_store else ():
        if model := registry.missing_model(name):
            lacking.setdefault(model, []).append(name)
            continue
        try:
            registry.get(name)
        except RagistryError as error:
            reasons.setdefault(str(error), []).append(name)
    failed = [name for names in (*reasons.values(), *lacking.values()) for name in names]
    working = ", ".join(name for name in registry.names() if name not in failed)
    broken = "; ".join(registry.broken.values())
    words = "" if registry.searches_words else " (the store does not search words)"
    detail = broken or "; ".join(filter(None, (f"{working}; by default {registry.default}{words}", registry.removed)))
    return [
        CheckResult("techniques", "failed" if broken else "ok", detail),
        *(
            CheckResult(", ".join(names), "failed" if registry.default in names else "warning", reason)
            for reason, names in reasons.items()
        ),
        *(
            CheckResult(
                f"techniques with a {model}",
                "failed" if registry.default in names else "off",
                f"{', '.join(names)}: no {model} is configured; add one to config/models.yaml under '{model}s'",
            )
            for model, names in lacking.items()
        ),
    ]


def _readers(opened: Workspace) -> list[CheckResult]:
    """Load each reader of the configuration and of installed packages; nothing without any."""
    from ragistry.plugins import READERS, offers
    from ragistry.readers.formats import AddedReader

    readers = [*opened.reading.readers.items(), *((name, AddedReader(name)) for name in offers(READERS))]
    found = [_try(f"reader {name}", partial(_load, reader)) for name, reader in readers]
    broken = [finding for finding in found if finding.state != "ok"]
    return broken or ([CheckResult("readers", "ok", ", ".join(name for name, _ in readers))] if readers else [])


def _load(reader: AddedReader) -> str:
    reader.load()
    return reader.version()


def _languages(opened: Workspace) -> list[CheckResult]:
    """Collections whose texts do not suit the embedding model or the setting ``language``."""
    from ragistry.library.fit import fit_of
    from ragistry.models.known import fit_line, is_english
    from ragistry.text.detection import detect_language, language_warnings

    findings, model = [], opened.embedder.fingerprint.model
    for collection in sorted({info.collection for info in opened.store.sources()}):
        samples = islice(opened.store.scan({"collection": collection}), CHUNKS_READ)
        lines = language_warnings(
            detect_language([chunk.content for chunk in samples]),
            language=opened.settings.language,
            embed_model=model,
            english_model=is_english(model),
        )
        findings += [CheckResult(f"language of {collection}", "warning", line) for line in lines]
    if line := fit_line(fit_of(opened.store)):
        findings.append(CheckResult("texts", "warning", line))
    return findings


def _repositories(opened: Workspace, *, with_model: bool) -> list[CheckResult]:
    """Report each repository that cannot be searched, or the number of repositories; nothing without any."""
    from ragistry.library.contract.entries import names

    try:
        known = names(opened.repositories.root)
    except (RagistryError, OSError) as error:
        return [CheckResult("repositories", "failed", str(error))]
    found = [_try(f"repository {name}", partial(_chunks_of, opened, name, with_model)) for name in known]
    broken = [finding for finding in found if finding.state != "ok"]
    return broken or ([CheckResult("repositories", "ok", ", ".join(known))] if known else [])


def _chunks_of(opened: Workspace, name: str, with_model: bool) -> str:
    from ragistry.utils.fingerprints import check_embedder

    def count(store: LibraryStore) -> int:
        if with_model:
            check_embedder(store, opened.embedder.fingerprint)
        return store.count()

    with opened.repositories.collection(name) as collection:
        return numbered(collection.read(count, 0), "chunk[|s]")


def _archives(opened: Workspace) -> list[CheckResult]:
    """Ask each archive a question; nothing without archives."""
    if not opened.settings.archives:
        return []
    try:
        techniques = opened.archives.techniques
    except RagistryError as error:
        return [CheckResult("archives", "failed", str(error))]
    return [_try(f"archive {each.name}", partial(_ask, each)) for each in techniques]


def _names(opened: Workspace) -> list[CheckResult]:
    """Report each ambiguous name, which makes every routed search fail."""
    from ragistry.library.targets import a

    try:
        clashes = opened.target_names.clashes()
    except RagistryError as error:
        return [CheckResult("names", "failed", str(error))]
    return [
        CheckResult("names", "failed", f"{name!r} is the name of {' and '.join(map(a, kinds))}; rename one of them")
        for name, kinds in clashes.items()
    ]


def _ask(archive: ArchiveTechnique) -> str:
    """Works for an empty archive too."""
    return f"{archive.place} answers ({numbered(len(archive.retrieve('a question', top_k=1)), 'passage[|s]')} found)"


def _orphaned(opened: Workspace) -> list[CheckResult]:
    """Report each collection that is not in documents.yaml; an unreadable store is already reported."""
    try:
        return [CheckResult("orphaned", "warning", f"{name!r}: {remedy}") for name, remedy in orphans(opened).items()]
    except RagistryError:
        return []


def _missing_sources(opened: Workspace) -> list[CheckResult]:
    """Report the sources whose files are missing; a moved file may also be in the library under its new name."""
    from ragistry.library.ingest.folder_sync import absence

    found = [info for info in opened.store.sources() if info.source_path and absence(info.source_path)]
    if not found:
        return []
    names = listed((f"{info.collection}: {info.source_file}" for info in found), 5)
    return [
        CheckResult(
            "files",
            "warning",
            f"{numbered(len(found), '[source has a file that is|sources have files that are]')} not there now, and "
            f"{agreeing(len(found), '[is|are]')} still searched: {names}; `ragistry sources delete` removes them",
        )
    ]


def _unsearchable(opened: Workspace) -> list[CheckResult]:
    """Report the files that are not searchable."""
    from ragistry.library.unsearchable import unsearchable_line

    line = unsearchable_line(opened.library.scope)
    return [CheckResult("unsearchable", "warning", line)] if line else []


def _ollama(opened: Workspace) -> CheckResult:
    from ragistry.models.registry import uses_ollama
    from ragistry.ollama.client import OllamaClient

    try:
        with OllamaClient(opened.settings.ollama_host, timeout=3.0) as client:
            models = [model.name for model in client.list_models()]
    except RagistryError as error:
        return CheckResult("ollama", "failed" if uses_ollama(opened.settings.embed_model) else "off", str(error))
    return CheckResult("ollama", "ok", f"models: {', '.join(models) or 'none; `ollama pull nomic-embed-text`'}")


def _print(findings: list[CheckResult]) -> None:
    from rich.text import Text

    styles = {"ok": "green", "off": "yellow", "warning": "yellow", "failed": "bold red"}
    for finding in findings:
        console().print(
            Text.assemble((f"{finding.state:7} ", styles[finding.state]), f"{finding.name}: {finding.detail}")
        )
