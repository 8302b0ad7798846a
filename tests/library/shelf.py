"""Ingests of a folder of files, each compared with what the files hold: what is stored, and what is reported.

A test is a list of steps: files to write, paths to ingest, and the report that is expected, without what is empty.
"""

from __future__ import annotations

import io
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from ragistry import Workspace
from ragistry.errors import RagistryError
from ragistry.library.ingest.report import IngestReport
from ragistry.library.ingest.source import SourceText
from ragistry.readers.extract import extract_text
from ragistry.utils.ids import chunk_id, composed
from tests.messages import check_message

PIPE = "<a named pipe>"
Content = str | bytes | Path | Mapping[str, str | bytes] | None
"""The content of a file; a path makes a link to it, a mapping a zip file, None deletes the file or folder."""
OUTCOMES = {"added", "updated", "skipped", "deleted", "failed", "vanished"}
COUNTS = {"chunks", "embedded", "waiting"}
"""Compared only where they are expected."""
EXPECTED = OUTCOMES | COUNTS | {"warnings", "unread", "left_out", "refused"}


class Step(NamedTuple):
    """One ingest: the changed files, the paths, the options, and the report."""

    files: Mapping[str, Content]
    paths: tuple[str | SourceText, ...]
    options: dict[str, Any]
    expected: dict[str, Any]


def step(files: Mapping[str, Content] | None = None, *paths: str | SourceText, **words: Any) -> Step:
    """Make a step.

    Names of sources may stand in one text. What is pruned has vanished. ``left_out`` is the number of all suffixes,
    and ``refused`` the error of the call.
    """
    expected = {name: value for name, value in words.items() if name in EXPECTED}
    if words.get("prune") and "deleted" in expected:
        expected.setdefault("vanished", expected["deleted"])
    for name in OUTCOMES & expected.keys():
        value = expected[name]
        expected[name] = sorted(value.split() if isinstance(value, str) else value)
    options = {name: value for name, value in words.items() if name not in EXPECTED}
    return Step(files or {}, paths or ("",), options, expected)


class Held(NamedTuple):
    """A stored source."""

    text: str
    path: str


@dataclass
class Shelf:
    """A folder, and a library that ingests it into ``notes``."""

    workspace: Workspace
    root: Path
    patch: pytest.MonkeyPatch

    def write(self, files: Mapping[str, Content]) -> None:
        for name, content in files.items():
            path = self.root / name
            if content is None:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir()
            elif content is PIPE:
                os.mkfifo(path)
            elif isinstance(content, Path):
                path.symlink_to(content)
            else:
                path.write_bytes(bytes_of(content))

    def play(self, *steps: Step) -> None:
        """Carry out the steps, and compare each report."""
        for number, one in enumerate(steps):
            self.write(one.files)
            said = self.ingest(*one.paths, **one.options)
            said = {name: value for name, value in said.items() if name not in COUNTS or name in one.expected}
            assert said == one.expected, f"step {number} reports {said}, not {one.expected}"

    def ingest(
        self, *paths: str | SourceText, cwd: str | None = None, denied: dict[str, str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Ingest paths of the folder, check what is stored, and return what is reported.

        Args:
            paths: Paths below the folder, and texts.
            cwd: Folder in which the paths are relative.
            denied: What a function of `os` cannot look at; see `deny`.
            options: Options of the ingest.
        """
        before = self.held()
        given = [one if isinstance(one, SourceText) or cwd is not None else self.root / one for one in paths]
        report, error = IngestReport(), None
        with self.patch.context() as patch:
            if cwd is not None:
                patch.chdir(self.root / cwd)
            for call, names in (denied or {}).items():
                deny(patch, call, *(self.root / name for name in names.split()))
            try:
                report = self.workspace.library.ingest_paths(given, "notes", **options)
            except RagistryError as raised:
                check_message(str(raised), raised=raised)
                error = raised
        for text in [*report.warnings, *(one.error for one in report.failed)]:
            check_message(text)
        self.check(report, before, self.held())
        return self.said(report, error)

    def said(self, report: IngestReport, error: RagistryError | None) -> dict[str, Any]:
        said: dict[str, Any] = {name: sorted(getattr(report, name)) for name in OUTCOMES - {"failed"}}
        said["failed"] = sorted(one.source.removeprefix(f"{self.root}/") for one in report.failed)
        said |= {"warnings": len(report.warnings), "unread": report.unread, "left_out": sum(report.left_out.values())}
        said["refused"] = type(error) if error else None
        counts = {"chunks": report.chunks, "embedded": report.embedded}
        counts["waiting"] = sum(info.waiting for info in self.workspace.library.sources("notes"))
        return {name: value for name, value in said.items() if value} | counts

    def held(self) -> dict[str, Held]:
        """The sources of the store, whose chunks have their ids and places."""
        found: dict[str, list[str]] = {}
        paths: dict[str, str] = {}
        for one in sorted(self.workspace.store.scan(), key=lambda one: one.metadata["chunk_index"]):
            metadata = one.metadata
            name = metadata["source_file"]
            chunks = found.setdefault(name, [])
            assert (one.id, metadata["chunk_index"]) == (chunk_id("notes", name, len(chunks)), len(chunks))
            assert (metadata["collection"], metadata["type"]) == ("notes", "document")
            assert (len(metadata["source_hash"]), metadata["token_count"] > 1) == (64, True)
            chunks.append(one.content)
            paths[name] = metadata.get("source_path", "")
        return {composed(name): Held("".join(" ".join(chunks).split()), paths[name]) for name, chunks in found.items()}

    def check(self, report: IngestReport, before: dict[str, Held], now: dict[str, Held]) -> None:
        """Check that the store changed as the report says, and holds the text of each file."""
        assert self.workspace.store.verify() == []
        changed = {name for name in before | now if before.get(name) != now.get(name)}
        added, updated, skipped, deleted = (
            set(map(composed, names)) for names in (report.added, report.updated, report.skipped, report.deleted)
        )
        assert now.keys() - before.keys() >= added
        assert now.keys() & before.keys() >= updated
        assert before.keys() - now.keys() == deleted
        infos = self.workspace.library.sources("notes")
        waiting = {info.source_file for info in infos if info.waiting and info.source_file not in before}
        assert changed <= added | updated | deleted | waiting
        for name in (added | updated | skipped) & now.keys():
            if Path(now[name].path).is_file():
                assert now[name].text == "".join(extract_text(now[name].path).split()), name
        counts = Counter(composed(one.metadata["source_file"]) for one in self.workspace.store.scan())
        assert report.chunks == sum(counts[name] for name in added | updated | changed & waiting)


def deny(monkeypatch: pytest.MonkeyPatch, call: str, *places: Path) -> None:
    """Let ``os.stat``, ``os.lstat`` or ``os.scandir`` refuse what is at and below these places, also to root."""
    allowed = getattr(os, call)

    def denied(path: str | Path, **options: bool) -> object:
        if isinstance(path, str | Path) and any(Path(path).is_relative_to(place) for place in places):
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path, **options)

    monkeypatch.setattr(os, call, denied)


def bytes_of(content: str | bytes | Mapping[str, str | bytes]) -> bytes:
    """The bytes of a file; those of a zip file, of its members."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    with io.BytesIO() as stream:
        with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
            for name, member in content.items():
                archive.writestr(name, member)
        return stream.getvalue()
