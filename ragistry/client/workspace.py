"""A workspace on a server: `connect` in place of `open_workspace`, with the same methods, types and errors."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace as replaced
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from socket import gethostname
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self
from urllib.parse import quote

from ragistry.client.connection import Connection, error_of
from ragistry.errors import CollectionNotFoundError, RagistryError, ServerError, SourceError, UnsupportedError
from ragistry.library.given import check_given, check_optional
from ragistry.library.report import Failure, IngestReport
from ragistry.library.source import SourceBytes, SourceFile
from ragistry.types import Document, Progress, RetrievalResult, SourceInfo, Stage, StageScore, Where
from ragistry.utils.limits import check_query, check_top_k
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from ragistry.pipelines.answer import Answer
    from ragistry.protocols import Engine
    from ragistry.techniques.routing.route import Route

FILES_AT_ONCE = 200
BYTES_AT_ONCE = 50_000_000
"""Of one upload; a larger file is sent alone."""
FIRST_LOOK, LAST_LOOK = 0.02, 1.0
"""Seconds between two looks at a job: at first, and at last."""


def connect(url: str, token: str | None = None, *, timeout: float = 60.0) -> RemoteWorkspace:
    """The workspace that `ragistry serve` serves at ``url``. Nothing is asked yet.

    ``timeout``: seconds for an answer; an ingest may take longer. Raises `ConfigError` for what is not an address.
    """
    return RemoteWorkspace(Connection(url, token, timeout=timeout))


class RemoteWorkspace:
    """A workspace on a server, made by `connect`. Close it, or use it in a ``with`` block. Threads may share it.

    Beside what a `Workspace` raises, every method raises `ServerError`: `ServerConnectionError`, `ServerBusyError`,
    `AccessDeniedError`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.library = RemoteLibrary(connection)

    def search(
        self,
        query: str,
        technique: str | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
    ) -> RetrievalResult:
        """As `Workspace.search`."""
        return self.library.search(query, collection, top_k, technique=technique, where=where)

    def route(self, query: str, technique: str | None = None, where: Where | None = None) -> Route:
        """Where a query would be searched, and why, by a technique that routes (default: the first that does)."""
        from ragistry.techniques.routing.route import Route

        body = {"query": check_query(query), "technique": technique, "where": _condition(where)}
        found = self._connection.call("POST", "/v1/route", body, again=True)
        values = {name: value for name, value in found.items() if name not in ("query", "technique")}
        return Route(**values | {"chosen": tuple(found["chosen"])})

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class RemoteLibrary:
    """The methods of a `DocumentService`, each as there. Files are read here and sent; the server never sees a path.

    A source that was sent has no path on the server: the same name in the same collection is the same source. With
    ``prune``, those go that an ingest of this folder on this machine sent last, and whose files are here no longer.
    ``engine`` raises `UnsupportedError`. What is taken in is acknowledged when the server has it on its disk, and each
    method waits until the job has ended; Ctrl-C cancels it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def search(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: str | None = None,
        where: Where | None = None,
    ) -> RetrievalResult:
        check_optional(collection=collection, technique=technique)
        top_k = None if n is None else check_top_k(n)
        body = {"query": check_query(query), "collection": collection, "top_k": top_k, "technique": technique}
        found = self._connection.call("POST", "/v1/search", body | {"where": _condition(where)}, again=True)
        documents = [_document(one) for one in found["documents"]]
        trace = tuple(Stage(**stage) for stage in found["trace"])
        return RetrievalResult(found["query"], documents, found["total_results"], found["search_time_ms"], trace)

    def answer(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: str | None = None,
        where: Where | None = None,
        on_piece: Callable[[str], object] | None = None,
    ) -> Answer:
        """As there, but the answer comes whole: ``on_piece`` is called once."""
        from ragistry.pipelines.answer import Answer, Sentence

        check_optional(collection=collection, technique=technique, on_piece=on_piece)
        top_k = None if n is None else check_top_k(n)
        body = {"query": check_query(query), "collection": collection, "top_k": top_k, "technique": technique}
        found = self._connection.call("POST", "/v1/answer", body | {"where": _condition(where)}, again=True)
        if on_piece is not None and found["answer"]:
            on_piece(found["answer"])
        documents = tuple(_document(one) for one in found["documents"])
        sentences = [Sentence(one["text"], tuple(one["citations"]), one["supported"]) for one in found["sentences"]]
        return Answer(found["query"], documents, tuple(sentences), found["reason"])

    def ingest_file(self, path: str | Path, collection: str, *, replace: bool = False) -> int:
        from ragistry.library.listing import check_path, one_file

        check_given(path=path, collection=collection, replace=replace)
        check_path(path, "file")
        return _chunks_or_raise(self._send([one_file(path)], collection, replace=replace))

    def ingest_text(self, text: str, source: str, collection: str) -> int:
        check_given(text=text, source=source, collection=collection)
        body = {"collection": collection, "sources": [{"source": source, "text": text}]}
        return _chunks_or_raise(self._finished(self._connection.call("POST", "/v1/ingest/texts", body)))

    def ingest_folder(
        self,
        path: str | Path,
        collection: str,
        *,
        prune: bool = False,
        follow_links: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> IngestReport:
        check_given(path=path, collection=collection, prune=prune, follow_links=follow_links, replace=replace)
        check_optional(progress=progress)
        _check_no_engine(engine)
        self._collection(collection)
        return self._ingest_folder(path, collection, prune, follow_links, replace, progress, {})

    def ingest_paths(
        self,
        paths: Sequence[str | Path | SourceBytes],
        collection: str,
        *,
        prune: bool = False,
        follow_links: bool = False,
        replace: bool = False,
        allow_private: bool = False,
        changed: Collection[str] | None = None,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> IngestReport:
        from ragistry.library.listing import check_path, is_folder, one_file, without_covered
        from ragistry.library.pages import fetched
        from ragistry.utils.extracted import ExtractLimits
        from ragistry.utils.urls import is_url

        check_given(paths=paths, collection=collection, prune=prune, follow_links=follow_links, replace=replace)
        check_given(allow_private=allow_private)
        check_optional(changed=changed, progress=progress)
        _check_no_engine(engine)
        self._collection(collection)
        given = [path for path in paths if isinstance(path, SourceBytes)]
        urls = [path for path in paths if isinstance(path, str) and is_url(path)]
        named = [path for path in paths if not (isinstance(path, SourceBytes) or is_url(path))]
        for path in named:
            check_path(path)
        taken: dict[str, SourceFile | SourceBytes] = {}
        named = without_covered(named, follow_links=follow_links)
        pages, failed = fetched(urls, ExtractLimits(), allow_private=allow_private)
        files: list[SourceFile | SourceBytes] = [one_file(path) for path in named if not is_folder(path)]
        files += [*given, *pages]
        report = self._send(files, collection, replace=replace, progress=progress, taken=taken)
        report.failed.extend(failed)
        for path in named:
            if is_folder(path):
                try:
                    report.merge(
                        self._ingest_folder(path, collection, prune, follow_links, replace, progress, taken, changed)
                    )
                except SourceError as error:
                    if len(paths) == 1:
                        raise
                    report.failed.append(Failure(str(path), error))
        return report

    def _ingest_folder(
        self,
        path: str | Path,
        collection: str,
        prune: bool,
        follow_links: bool,
        replace: bool,
        progress: Progress | None,
        taken: dict[str, SourceFile | SourceBytes],
        changed: Collection[str] | None = None,
    ) -> IngestReport:
        from ragistry.library.file_names import start_of
        from ragistry.library.listing import list_folder, nothing_readable
        from ragistry.library.vanished import emptied, vanished

        listing = list_folder(path, follow_links=follow_links)
        folder, start = _folder_id(listing.root), start_of(listing.root)
        sent = self._connection.get(f"{_address(collection)}/sources", folder=folder)["sources"]
        stored = [replaced(_source_info(row), source_path=start + row["source_file"]) for row in sent]
        gone = vanished(listing, stored, follow_links=follow_links) if listing.complete else []
        if not (listing.files or listing.failed or listing.links or gone):
            raise nothing_readable(path)
        if prune and gone and not listing.files:
            raise emptied(path, collection, gone)
        files = listing.files if changed is None else _below(listing.files, changed)
        report = self._send(files, collection, replace=replace, progress=progress, taken=taken, folder=folder)
        report.failed.extend(listing.failed)
        report.warnings.extend(listing.warnings())
        report.unread = dict(listing.unread)
        report.vanished = gone
        if prune and gone:
            self.delete_sources(gone, collection)
            report.deleted.extend(gone)
        return report

    def _send(
        self,
        sources: Sequence[SourceFile | SourceBytes],
        collection: str,
        *,
        replace: bool,
        progress: Progress | None = None,
        taken: dict[str, SourceFile | SourceBytes] | None = None,
        folder: str | None = None,
    ) -> IngestReport:
        """Upload files, some at once, and wait for what becomes of them."""
        report, done = IngestReport(), 0
        wanted = list(_each_name_once(sources, collection, {} if taken is None else taken, report))
        for batch in _batches(wanted):
            with ExitStack() as stack:
                files = [
                    ("files", (PurePosixPath(one.source_file).name, stack.enter_context(_stream(one)))) for one in batch
                ]
                form = {
                    "collection": collection,
                    "replace": str(replace).lower(),
                    "names": [one.source_file for one in batch],
                }
                form |= {} if folder is None else {"folder": folder}
                job = self._connection.call("POST", "/v1/ingest/files", form=form, files=files)
            report.merge(self._finished(job, progress, done, len(wanted)))
            done += len(batch)
        if progress is not None:
            progress("", len(sources), len(sources))
        return report

    def _finished(
        self, job: Mapping[str, Any], progress: Progress | None = None, before: int = 0, total: int = 0
    ) -> IngestReport:
        """The report of a job when it has ended. Raises what ended it early."""
        address, pause = f"/v1/jobs/{job['id']}", FIRST_LOOK
        try:
            while job["state"] in ("waiting", "running"):
                time.sleep(pause)
                pause = min(LAST_LOOK, pause * 1.5)
                job = self._connection.get(address)
                if progress is not None and job["current"]:
                    progress(job["current"], before + job["done"], total)
        except BaseException:  # Ctrl-C too
            with suppress(RagistryError):
                self._connection.call("DELETE", address, again=True)
            raise
        if job["state"] == "failed":
            raise error_of(job["error"]["type"], job["error"]["message"])
        if job["state"] == "cancelled":
            raise ServerError(f"job {job['id']} was cancelled; ingest again")
        values = {name: value for name, value in job["report"].items() if name != "collection"}
        failed = [Failure(one["source"], error_of(one["type"], one["error"])) for one in values["failed"]]
        return IngestReport(**values | {"failed": failed})

    def list_sources(self, collection: str | None = None) -> list[str]:
        return sorted({info.source_file for info in self.sources(collection)})

    def list_sources_detail(self, collection: str | None = None) -> list[dict[str, Any]]:
        check_optional(collection=collection)
        address = "/v1/sources" if collection is None else f"{_address(collection)}/sources"
        found: list[dict[str, Any]] = self._connection.get(address)["sources"]
        return found

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        return [_source_info(row) for row in self.list_sources_detail(collection)]

    def source(self, source: str, collection: str) -> SourceInfo:
        check_given(source=source, collection=collection)
        return _source_info(self._connection.get(f"{_address(collection)}/source", name=source))

    def list_collections(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._connection.get("/v1/collections")["collections"]
        return found

    def orphans(self) -> list[SourceInfo]:
        return [_source_info(row) for row in self._connection.get("/v1/orphans")["sources"]]

    def create_collection(self, name: str, description: str = "", display_name: str | None = None) -> None:
        check_given(name=name, description=description)
        check_optional(display_name=display_name)
        body = {"name": name, "description": description, "display_name": display_name}
        self._connection.call("POST", "/v1/collections", body)

    def rename_collection(self, name: str, new_name: str) -> int:
        check_given(name=name, new_name=new_name)
        return int(self._connection.call("PATCH", _address(name), {"name": new_name})["chunk_count"])

    def update_description(self, name: str, description: str | None = None, *, display_name: str | None = None) -> None:
        check_given(name=name)
        check_optional(description=description, display_name=display_name)
        self._connection.call("PATCH", _address(name), {"description": description, "display_name": display_name})

    def delete_collection(self, name: str) -> int:
        check_given(name=name)
        return int(self._connection.call("DELETE", _address(name))["chunks"])

    def delete_source(self, source: str, collection: str) -> int:
        check_given(source=source, collection=collection)
        return int(self._connection.call("DELETE", f"{_address(collection)}/source", params={"name": source})["chunks"])

    def delete_sources(self, sources: Sequence[str], collection: str) -> int:
        check_given(sources=sources, collection=collection)
        address = f"{_address(collection)}/sources/delete"
        return int(self._connection.call("POST", address, {"sources": list(sources)})["chunks"])

    def move_source(self, source: str, from_col: str, to_col: str, *, overwrite: bool = False) -> int:
        check_given(source=source, from_col=from_col, to_col=to_col, overwrite=overwrite)
        body = {"source": source, "to": to_col, "overwrite": overwrite}
        return int(self._connection.call("POST", f"{_address(from_col)}/sources/move", body)["chunks"])

    def count(self, collection: str | None = None) -> int:
        check_optional(collection=collection)
        if collection is not None:
            return int(self._collection(collection)["chunk_count"])
        return sum(int(row["chunk_count"]) for row in self.list_collections())

    def _collection(self, name: str) -> dict[str, Any]:
        """A collection. Raises `CollectionNotFoundError`."""
        found: dict[str, Any] = self._connection.get(_address(name))
        return found


def _address(collection: str) -> str:
    """Where a collection is served. A name that cannot be a part of an address is none of a collection."""
    if not collection or collection in (".", "..") or "/" in collection or not collection.isprintable():
        raise CollectionNotFoundError(f"no collection {collection!r}; `list_collections` names those that there are")
    return f"/v1/collections/{quote(collection, safe='')}"


def _condition(where: Where | None) -> dict[str, Any] | None:
    return None if where is None else dict(normalise(where))


def _document(values: Mapping[str, Any]) -> Document:
    scores = tuple(StageScore(**score) for score in values["scores"])
    return Document(values["content"], values["metadata"], values["score"], values["id"], scores)


def _source_info(row: Mapping[str, Any]) -> SourceInfo:
    return SourceInfo(
        row["collection"], row["source_file"], row["chunk_count"], row["source"], row["source_hash"],
        row["ingested_at"], row["source_path"], row["lost"],
    )  # fmt: skip


def _check_no_engine(engine: Engine | None) -> None:
    if engine is not None:
        raise UnsupportedError(
            f"engine={engine!r}: a server reads and embeds by itself; leave it out, or ingest with `open_workspace`"
        )


def _folder_id(root: Path) -> str:
    """By which the server knows the sources of a folder of this machine; the path itself stays here."""
    return sha256(f"{gethostname()}/{os.path.realpath(root)}".encode()).hexdigest()[:16]


def _each_name_once(
    sources: Sequence[SourceFile | SourceBytes],
    collection: str,
    taken: dict[str, SourceFile | SourceBytes],
    report: IngestReport,
) -> Iterator[SourceFile | SourceBytes]:
    """The files that can be sent; of two that have one name the first, and what is wrong with the others."""
    from ragistry.library.same_source import is_same_file
    from ragistry.library.same_source import taken as taken_by

    for source in sources:
        earlier = taken.setdefault(source.source_file, source)
        if earlier is source:
            try:
                if source.path:
                    _check_readable(source.path)
            except SourceError as error:
                del taken[source.source_file]
                report.failed.append(Failure(source.shown, error))
                continue
            yield source
        elif not is_same_file(source.place, earlier.place):
            report.failed.append(Failure(source.shown, taken_by(source, collection, earlier.path)))


def _check_readable(path: str) -> None:
    try:
        path.encode()
        if not Path(path).is_file():
            raise SourceError(f"{path!r} is a folder, device or pipe; give a regular file")
        with Path(path).open("rb"):
            pass
    except (OSError, UnicodeEncodeError) as error:
        raise SourceError(f"{path!r} cannot be read: {error}; check its name and permissions") from error


def _below(files: Sequence[SourceFile], changed: Collection[str]) -> list[SourceFile]:
    """The files at and below these paths."""
    starts = tuple(os.path.realpath(path) for path in changed)
    return [one for one in files if any(one.place == start or one.place.startswith(start + os.sep) for start in starts)]


def _stream(source: SourceFile | SourceBytes) -> IO[bytes]:
    return BytesIO(source.data) if isinstance(source, SourceBytes) else source.open()


def _batches(sources: Sequence[SourceFile | SourceBytes]) -> Iterator[list[SourceFile | SourceBytes]]:
    batch: list[SourceFile | SourceBytes] = []
    size = 0
    for source in sources:
        length = len(source.data) if isinstance(source, SourceBytes) else Path(source.path).stat().st_size
        if batch and (len(batch) >= FILES_AT_ONCE or size + length > BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += length
    if batch:
        yield batch


def _chunks_or_raise(report: IngestReport) -> int:
    if report.failed:
        raise report.failed[0].cause
    return report.chunks
