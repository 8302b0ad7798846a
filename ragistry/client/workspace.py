"""A workspace on a server, with the methods, types and errors of a local workspace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from dataclasses import replace as replaced
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from socket import gethostname
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from ragistry.client.connection import Connection, error_of
from ragistry.errors import (
    CollectionNotFoundError,
    ConfigError,
    RagistryError,
    ServerError,
    SourceError,
    UnsupportedError,
)
from ragistry.library.ingest.methods import IngestMethods, IngestObserver
from ragistry.library.ingest.missing import entry
from ragistry.library.ingest.plan import IngestPlan
from ragistry.library.ingest.report import Failure, IngestReport, report_from_mapping, without_missing
from ragistry.library.ingest.source import IngestSource, SourceBytes, SourceFile, SourceText, start_of
from ragistry.library.ingest.source_metadata import modification_time
from ragistry.library.search_methods import SearchMethods, WorkspaceMethods
from ragistry.readers.extracted import ExtractLimits
from ragistry.types import IngestedFolder, RetrievalResult, SearchRequest, SourceInfo, Unsearchable, Where
from ragistry.utils.dataclass_json import from_json
from ragistry.utils.limits import check_queries, check_query, check_top_k
from ragistry.utils.metadata import checked_metadata
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from ragistry.answers.answer import Answer, AnswerStream
    from ragistry.protocols import Engine
    from ragistry.techniques.routing.route import Route

T = TypeVar("T")
FILES_AT_ONCE = 200
BYTES_AT_ONCE = 50_000_000
"""Limits of one upload; a larger file is sent alone."""
FIRST_LOOK, LAST_LOOK = 0.02, 1.0
"""Seconds between two requests for the state of a job: at first, and at most."""


def connect(url: str, token: str | None = None, *, timeout: float = 60.0) -> RemoteWorkspace:
    """Return the workspace that `ragistry serve` serves at an address.

    The first request is sent when a method is called.

    Args:
        url: Address of the server.
        token: Token of the server.
        timeout: Maximum seconds for a request; an ingest may take longer.

    Raises:
        ConfigError: The address or the token is invalid.
    """
    return RemoteWorkspace(Connection(url, token, timeout=timeout))


class RemoteWorkspace(WorkspaceMethods):
    """A workspace on a server, created by `connect`.

    Threads may share it. Close it, or use it in a ``with`` block. Every method raises the errors of `Workspace` and the
    subclasses of `ServerError`: `ServerConnectionError`, `ServerBusyError` and `AccessDeniedError`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._library = RemoteLibrary(connection)

    @property
    def library(self) -> RemoteLibrary:
        """The collections, to ingest and search."""
        return self._library

    def route(self, query: str, technique: str | None = None, where: Where | None = None) -> Route:
        """Explain which targets a router would search for a query, without a search.

        Args:
            query: The query.
            technique: Name of a routing technique; None for the first one.
            where: Condition on metadata.
        """
        from ragistry.techniques.routing.route import Route

        body = {"query": check_query(query), "technique": technique, "where": _condition(where)}
        return _read(Route, self._connection.call("POST", "/v1/route", body, again=True))

    def call_tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that reads texts: ``grep``, ``read``, ``outline``, ``sources`` or ``check_quotes``.

        Args:
            name: Name of the tool.
            arguments: Its arguments, such as ``pattern="LNT-1042"``.

        Returns:
            The answer as plain values.
        """
        found: dict[str, Any] = self._connection.call(
            "POST", f"/v1/tools/{quote(name, safe='')}", arguments, again=True
        )
        return found

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()


class RemoteLibrary(IngestMethods, SearchMethods):
    """The methods of `DocumentService`, over HTTP.

    Files are read on this machine and uploaded; the server receives no paths. A source is identified by its name and
    collection. The option ``prune`` deletes the sources that an earlier ingest of the same folder sent from this
    machine, and whose files are gone. The option ``engine`` raises `UnsupportedError`.

    The server acknowledges an upload after it has saved the files. Each ingest method then waits until the job has
    ended; Ctrl-C cancels the job.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run_search(self, request: SearchRequest) -> RetrievalResult:
        check_query(request.query)
        return _read(RetrievalResult, self._connection.call("POST", "/v1/search", _body(request), again=True))

    def run_searches(self, queries: Sequence[str], options: SearchRequest) -> list[RetrievalResult]:
        texts = check_queries(queries)
        body = {key: value for key, value in _body(options).items() if key != "query"} | {"queries": texts}
        found = self._connection.call("POST", "/v1/search/many", body, again=True) if texts else {"results": []}
        return [_read(RetrievalResult, one) for one in found["results"]]

    def run_answer(self, request: SearchRequest, on_piece: Callable[[str], object] | None = None) -> Answer:
        if on_piece is not None:
            return super().run_answer(request, on_piece)
        check_query(request.query)
        return _read_answer(self._connection.call("POST", "/v1/answer", _body(request), again=True))

    def run_answer_stream(self, request: SearchRequest) -> AnswerStream:
        from ragistry.answers.answer import AnswerStream

        check_query(request.query)
        return AnswerStream(self._answering(_body(request)))

    def _answering(self, body: Mapping[str, Any]) -> Generator[str, None, Answer]:
        for event, data in self._connection.events("/v1/answer/stream", body):
            if event == "piece":
                yield data
            elif event == "answer":
                return _read_answer(data)
        raise ServerError("the server ended the answer early; ask again")

    def carry_out(
        self, plan: IngestPlan, *, observer: IngestObserver | None = None, engine: Engine | None = None
    ) -> IngestReport:
        """See `IngestMethods.carry_out`.

        Each upload is a job on the server; this method waits for all of them.
        """
        if engine is not None:
            raise UnsupportedError(
                f"engine={engine!r}: a server reads and embeds without an engine; leave it out, or ingest "
                "with `open_workspace`"
            )
        observer, report, taken = observer or IngestObserver(), plan.report, dict[str, IngestSource]()
        texts = [one for one in plan.sources if isinstance(one, SourceText)]
        if texts:
            sources = [
                {"source": one.source_file, "text": one.text, "metadata": one.metadata.argument} for one in texts
            ]
            body = {"collection": plan.collection, "sources": sources}
            report.merge(self._finished(self._connection.call("POST", "/v1/ingest/texts", body), observer))
        told = len(plan.missing)
        self._record_missing(plan)
        total = len(plan.all_sources)
        files = [one for one in plan.sources if not isinstance(one, SourceText)]
        done = self._send(files, plan, taken, observer, len(texts), total)
        for folder in plan.folders:
            done = self._send(folder.files, plan, taken, observer, done, total, root=folder.root)
            report.failed = without_missing(report.failed, folder.root)
        if plan.prune and plan.gone:
            self.delete_sources(plan.gone, plan.collection)
            report.deleted.extend(plan.gone)
        if len(plan.missing) > told:
            self._record_missing(plan)
        observer.progress("", total, total)
        return report

    def _forget_missing(self, plan: IngestPlan) -> None:
        self._record_missing(plan)

    def _record_missing(self, plan: IngestPlan) -> None:
        """Tell the server of each folder what could not be sent, what was left out and what is there."""
        bodies: dict[str, dict[str, Any]] = {}
        for folder in plan.folders:
            is_listed = folder.listing is not None and folder.listing.complete
            names = [file.source_file for file in folder.listing.files] if folder.listing and is_listed else None
            body = {"names": names, "counts": folder.counts, "exclude": folder.exclude, "failed": {}}
            bodies[os.path.realpath(folder.root)] = {"folder": _folder_id(folder.root), **body}
        for one in plan.missing:
            path = f"{one.source_path}{os.sep}"
            root = next((root for root in bodies if path.startswith(start_of(root))), "")
            bodies.setdefault(root, {"failed": {}})["failed"][one.source_file] = one.reason
        for body in bodies.values():
            with suppress(UnsupportedError):
                self._connection.call("POST", f"{_address(plan.collection)}/unsearchable", body)

    def _check_collection(self, name: str) -> None:
        self._collection(name)

    def _stored_below(self, folder: Path, collection: str) -> Sequence[SourceInfo]:
        sent = self._connection.get(f"{_address(collection)}/sources", folder=_folder_id(folder))["sources"]
        start = start_of(folder)
        return [replaced(_read(SourceInfo, row), source_path=start + row["source_file"]) for row in sent]

    def _kept_patterns(self, folder: Path, collection: str) -> Sequence[str] | None:
        try:
            found = self.ingested_folders(collection)
        except UnsupportedError:
            return None
        return next((one.exclude for one in found if one.folder == _folder_id(folder)), ())

    def _limits(self) -> ExtractLimits:
        return ExtractLimits()

    def _send(
        self,
        sources: Sequence[IngestSource],
        plan: IngestPlan,
        taken: dict[str, IngestSource],
        observer: IngestObserver,
        done: int,
        total: int,
        root: Path | None = None,
    ) -> int:
        """Upload files in batches, and wait for their jobs.

        Returns:
            Number of sources that are done.
        """
        wanted = list(_each_name_once(sources, plan, taken))
        for batch in _batches(wanted):
            with ExitStack() as stack:
                files = [
                    ("files", (PurePosixPath(one.source_file).name, stack.enter_context(_stream(one)))) for one in batch
                ]
                form = {
                    "collection": plan.collection,
                    "replace": str(plan.replace).lower(),
                    "names": [one.source_file for one in batch],
                    "metadata": json.dumps([one.metadata.argument for one in batch]),
                    "tables": json.dumps([one.metadata.table for one in batch]),
                    "modified": [one.metadata.modified or modification_time(one.path) for one in batch],
                }
                form |= {} if root is None else {"folder": _folder_id(root)}
                job = self._connection.call("POST", "/v1/ingest/files", form=form, files=files)
            plan.report.merge(self._finished(job, observer, done, total))
            done += len(batch)
        return done

    def _finished(
        self, job: Mapping[str, Any], observer: IngestObserver, before: int = 0, total: int = 1
    ) -> IngestReport:
        """Wait until a job has ended, and return its report.

        Raises:
            RagistryError: The job failed or was cancelled.
        """
        address, pause = f"/v1/jobs/{job['id']}", FIRST_LOOK
        try:
            while job["state"] in ("waiting", "running"):
                time.sleep(pause)
                pause = min(LAST_LOOK, pause * 1.5)
                job = self._connection.get(address)
                observer.check()
                if job["current"]:
                    observer.progress(job["current"], before + job["done"], total)
        except BaseException:  # including Ctrl-C
            with suppress(RagistryError):
                self._connection.call("DELETE", address, again=True)
            raise
        if job["state"] == "failed":
            raise error_of(job["error"]["type"], job["error"]["message"])
        if job["state"] == "cancelled":
            raise ServerError(f"job {job['id']} was cancelled; ingest again")
        return report_from_mapping(job["report"], error_of)

    def list_sources(self, collection: str | None = None) -> list[str]:
        return sorted({info.source_file for info in self.sources(collection)})

    def list_sources_detail(self, collection: str | None = None) -> list[dict[str, Any]]:
        address = "/v1/sources" if collection is None else f"{_address(collection)}/sources"
        found: list[dict[str, Any]] = self._connection.get(address)["sources"]
        return found

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        return [_read(SourceInfo, row) for row in self.list_sources_detail(collection)]

    def source(self, source: str, collection: str) -> SourceInfo:
        return _read(SourceInfo, self._connection.get(f"{_address(collection)}/source", name=source))

    def unsearchable(self, collection: str | None = None) -> Iterator[Unsearchable]:
        """Yield the files that are not searchable; see `DocumentService.unsearchable`."""
        params = {} if collection is None else {"collection": collection}
        while True:
            found = self._connection.get("/v1/unsearchable", **params)
            yield from (_read(Unsearchable, row) for row in found["unsearchable"])
            params["cursor"] = found["cursor"]
            if not params["cursor"]:
                return

    def ingested_folders(self, collection: str | None = None) -> list[IngestedFolder]:
        """List the folders that were ingested; see `DocumentService.ingested_folders`."""
        params = {"limit": "1"} if collection is None else {"limit": "1", "collection": collection}
        return [_read(IngestedFolder, row) for row in self._connection.get("/v1/unsearchable", **params)["folders"]]

    def list_collections(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._connection.get("/v1/collections")["collections"]
        return found

    def orphans(self) -> list[SourceInfo]:
        return [_read(SourceInfo, row) for row in self._connection.get("/v1/orphans")["sources"]]

    def create_collection(self, name: str, description: str = "", display_name: str | None = None) -> None:
        body = {"name": name, "description": description, "display_name": display_name}
        self._connection.call("POST", "/v1/collections", body)

    def rename_collection(self, name: str, new_name: str) -> int:
        return int(self._connection.call("PATCH", _address(name), {"name": new_name})["chunk_count"])

    def update_description(self, name: str, description: str | None = None, *, display_name: str | None = None) -> None:
        self._connection.call("PATCH", _address(name), {"description": description, "display_name": display_name})

    def delete_collection(self, name: str) -> int:
        return int(self._connection.call("DELETE", _address(name))["chunks"])

    def delete_source(self, source: str, collection: str) -> int:
        return int(self._connection.call("DELETE", f"{_address(collection)}/source", params={"name": source})["chunks"])

    def delete_sources(self, sources: Sequence[str], collection: str) -> int:
        address = f"{_address(collection)}/sources/delete"
        return int(self._connection.call("POST", address, {"sources": list(sources)})["chunks"])

    def move_source(self, source: str, from_col: str, to_col: str, *, overwrite: bool = False) -> int:
        body = {"source": source, "to": to_col, "overwrite": overwrite}
        return int(self._connection.call("POST", f"{_address(from_col)}/sources/move", body)["chunks"])

    def set_metadata(self, source: str, collection: str, metadata: Mapping[str, Any]) -> SourceInfo:
        address, body = f"{_address(collection)}/source", {"metadata": checked_metadata(metadata)}
        return _read(SourceInfo, self._connection.call("PATCH", address, body, params={"name": source}))

    def count(self, collection: str | None = None) -> int:
        if collection is not None:
            return int(self._collection(collection)["chunk_count"])
        return sum(int(row["chunk_count"]) for row in self.list_collections())

    def _collection(self, name: str) -> dict[str, Any]:
        """Read a collection.

        Raises:
            CollectionNotFoundError: The collection does not exist.
        """
        found: dict[str, Any] = self._connection.get(_address(name))
        return found


def _address(collection: str) -> str:
    """Return the path of a collection; a name that cannot be in a path is unknown."""
    if not collection or collection in (".", "..") or "/" in collection or not collection.isprintable():
        raise CollectionNotFoundError(f"no collection {collection!r}; list the collections with `list_collections`")
    return f"/v1/collections/{quote(collection, safe='')}"


def _body(request: SearchRequest) -> dict[str, Any]:
    """Check the options of a request, and convert it to the body of a search."""
    if request.top_k is not None:
        check_top_k(request.top_k)
    if not isinstance(request.technique, str | None):
        raise ConfigError(
            f"technique is {request.technique!r:.80}; a server knows techniques by name, so add an entry to its "
            "config/techniques.yaml and pass the name"
        )
    return asdict(request) | {"where": _condition(request.where)}


def _condition(where: Where | None) -> dict[str, Any] | None:
    return None if where is None else dict(normalise(where))


def _read_answer(values: dict[str, Any]) -> Answer:
    from ragistry.answers.answer import Answer

    return _read(Answer, values | {"answer": values.get("answer") or ""})


def _read(kind: type[T], values: Mapping[str, Any]) -> T:
    """Convert a response to a type. Raises `ServerError` if it does not fit."""
    try:
        return from_json(kind, values)
    except ValidationError as error:
        wrong = ", ".join(repr(".".join(map(str, one["loc"]))) for one in error.errors()[:3])
        raise ServerError(
            f"the server's response, a {kind.__name__}, lacks or has another type of {wrong}; "
            "use the same version of Ragistry here and on the server"
        ) from error


def _folder_id(root: Path) -> str:
    """Return an id for a local folder, because the server receives no paths."""
    return sha256(f"{gethostname()}/{os.path.realpath(root)}".encode()).hexdigest()[:16]


def _each_name_once(
    sources: Sequence[IngestSource], plan: IngestPlan, taken: dict[str, IngestSource]
) -> Iterator[IngestSource]:
    """Yield the files to send, and report unreadable files and duplicate names.

    Of several files with the same name, the first one is sent.
    """
    from ragistry.library.ingest.folder_sync import is_same_file
    from ragistry.library.ingest.folder_sync import taken as taken_by

    for source in sources:
        earlier = taken.setdefault(source.source_file, source)
        if earlier is source:
            try:
                if isinstance(source, SourceFile):
                    _check_readable(source)
            except SourceError as error:
                del taken[source.source_file]
                _fail(plan, source, error)
                continue
            yield source
        elif not is_same_file(source.place, earlier.place):
            _fail(plan, source, taken_by(source, plan.collection, earlier.path))


def _fail(plan: IngestPlan, source: IngestSource, error: SourceError) -> None:
    plan.report.failed.append(Failure(source.shown, error))
    plan.missing.append(entry(plan.collection, source.source_file, source.place, error))


def _check_readable(file: SourceFile) -> None:
    try:
        file.path.encode()
        if not Path(file.path).is_file():
            raise SourceError(f"{file.path!r} is a folder, device or pipe; give a regular file")
        with file.open():  # a member of a zip file may be damaged
            pass
    except (OSError, UnicodeEncodeError) as error:
        raise SourceError(f"{file.path!r} cannot be read: {error}; check its name and permissions") from error


def _stream(source: IngestSource) -> IO[bytes]:
    if isinstance(source, SourceFile):
        return source.open()
    return BytesIO(source.data if isinstance(source, SourceBytes) else source.text.encode())


def _batches(sources: Sequence[IngestSource]) -> Iterator[list[IngestSource]]:
    batch: list[IngestSource] = []
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
