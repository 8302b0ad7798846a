"""The same call gives the same value, or the same error, in Python, shell, HTTP, client and MCP, and on every store.

`OPERATIONS` are calls that read, `STEPS` are calls that write, `REFUSED` and `WRONG_CALLS` are wrong. Each has its form
for every door that has it; Python on the local store gives the value that the others must give.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4
from zipfile import ZipFile

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("mcp")

from ragistry import RemoteWorkspace, Workspace, connect, errors, open_workspace
from ragistry.answers.answer import Answer
from ragistry.errors import RagistryError, public_name
from ragistry.library.ingest.report import IngestReport, report_as_mapping
from ragistry.library.ingest.source import SourceBytes
from ragistry.library.why import explain
from ragistry.presentation.plain import as_mapping, describe_techniques
from ragistry.techniques.routing.technique import routing_technique
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.openai import answer_tool_call
from ragistry.tools.reach import Reach
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.toolbox import READING, TOOLS
from ragistry.types import RetrievalResult, SearchRequest
from ragistry.utils.dataclass_json import to_json
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.mcp.conftest import in_memory
from tests.messages import check_message
from tests.readers.office_files import MAKERS
from tests.serving import served

TEA = "# Green tea\n\nSteep green tea in water of eighty degrees.\n\n# Black tea\n\nBoiling water, four minutes."
RAIN = "A cold front brings rain.\r\nAnd snow, and then clear skies."
ANSWER = 'It says "water of eighty degrees" (green.md) and "water of ninety degrees" (green.md).'
SAID = "Steep green tea in water of eighty degrees [1]. Mars is red [1]."
FILES = {
    "black.md": b"# Black tea\n\nBoiling water, four minutes.",
    "leaves/oolong.txt": b"Oolong rests in a gaiwan.",
    'leaves/a "quoted", größer.txt': b"White tea.",
    "empty.md": b"",
    "broken.pdf": b"%PDF-1.4 nothing",
    "sound.mp3": b"ID3\x04\0\0\0\0\0\x23TSSE\0\0",
    "id_rsa": b"A key.",
}
MODIFIED = datetime(2026, 5, 1, 10, tzinfo=UTC)
UNREAD = ("id_rsa", "sound.mp3")
"""Those that an ingest of their folder leaves out."""
PASSING = {"ms", "search_time_ms", "model_calls", "tokens", "ingested_at", "at"}
"""Values that differ from call to call."""


@dataclass(frozen=True)
class House:
    """A filled workspace, its server and a client; ``writer`` is the server of its language model."""

    workspace: Workspace
    url: str
    remote: RemoteWorkspace
    writer: OpenAIServer


class Outcome(NamedTuple):
    """What a call gave: its value, or the type and the message of an error; the shell and MCP tell no type."""

    value: Any = None
    kind: str = ""
    message: str = ""


@dataclass(frozen=True)
class Operation:
    """A call at every door that has it.

    Attributes:
        python: The call of a local or remote workspace.
        shell: The words of the command.
        http: Method, path and options of the request.
        mcp: The tool and its arguments.
        remote: Whether a client has it.
        words: Whether it searches by words, which Chroma cannot.
        seen: What is compared of values of different form.
    """

    python: Callable[[Any], Any]
    shell: str = ""
    http: tuple[str, str, dict[str, Any]] | None = None
    mcp: tuple[str, dict[str, Any]] | None = None
    remote: bool = True
    words: bool = False
    seen: Callable[[Any], Any] = lambda value: value

    def doors(self) -> list[str]:
        """The doors that have it, apart from Python on the local store."""
        others = {"shell": self.shell, "http": self.http, "client": self.remote, "mcp": self.mcp}
        return [door for door, has_it in others.items() if has_it] + ["postgres"] + ["chroma"] * (not self.words)


def put(path: Path, content: bytes) -> None:
    """Write a file with the same time in every house."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (MODIFIED.timestamp(), MODIFIED.timestamp()))


def plain(value: Any) -> Any:
    """The value as JSON, without `PASSING`, and with numbers as exact as all stores keep them."""
    if isinstance(value, RetrievalResult | Answer):
        value = as_mapping(value, "english")
    if isinstance(value, IngestReport):
        value = report_as_mapping(value, "notes")
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items() if key not in PASSING}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def without_abilities(value: Any) -> Any:
    """A value as a store without optional abilities gives it."""
    if "collections" in value:
        return {"collections": [row | {"unsearchable_count": None} for row in value["collections"]]}
    return value | {"unknown_words": []} if "unknown_words" in value else value


def response(operation: Operation, house: House) -> httpx.Response:
    """The response to the request; of a job, to the question whether it has ended."""
    assert operation.http is not None
    method, path, options = operation.http
    if path == "/v1/ingest/files":
        paths = [one for one in sorted(Path("files").rglob("*")) if one.is_file() and one.name not in UNREAD]
        names = [one.relative_to("files").as_posix() for one in paths]
        form = {"collection": "notes", "names": names, "modified": [MODIFIED.isoformat()] * len(names)}
        options = {"data": form, "files": [("files", (one.name, one.read_bytes())) for one in paths]}
    answer = httpx.request(method, house.url + path, **options, timeout=60)
    while answer.json().get("state") in ("waiting", "running"):
        time.sleep(0.01)
        answer = httpx.get(f"{house.url}/v1/jobs/{answer.json()['id']}", timeout=60)
    return answer


def call(door: str, operation: Operation, house: House, run: Run) -> Outcome:
    """Make the call at the door; Python, if the door does not have it."""
    if door == "shell" and operation.shell:
        done = run("-w", house.workspace.root, *shlex.split(operation.shell), "--json")
        if done.err.startswith("error: "):
            return Outcome(None, "", done.err.removeprefix("error: ").removesuffix("\n"))
        return Outcome(plain(done.json))
    if door == "http" and operation.http:
        found = response(operation, house).json()
        error = found.get("error")
        return Outcome(None, error["type"], error["message"]) if error else Outcome(plain(found.get("report", found)))
    if door == "mcp" and operation.mcp:
        name, arguments = operation.mcp
        tool = SearchLibraryTool(house.workspace.library, technique="bm25", n=3)
        found = in_memory(tool, lambda client: client.call_tool(name, arguments))
        return Outcome(plain(found.structured_content))
    try:
        if door == "shell":  # there is one writer
            with open_workspace(house.workspace.root) as opened:
                return Outcome(plain(operation.python(opened)))
        return Outcome(plain(operation.python(house.remote if door == "client" else house.workspace)))
    except RagistryError as error:
        return Outcome(None, public_name(type(error)), str(error))


# The calls

METHODS = {
    "create_collection": ("collections add {name}", "POST /v1/collections"),
    "update_description": ("collections describe {name}", "PATCH /v1/collections/{name}"),
    "rename_collection": ("collections rename {name} {new_name}", "PATCH /v1/collections/{name}"),
    "delete_collection": ("collections delete {name} --yes", "DELETE /v1/collections/{name}"),
    "list_sources_detail": ("sources list -c {collection}", "GET /v1/collections/{collection}/sources"),
    "source": ("", "GET /v1/collections/{collection}/source?name={source}"),
    "set_metadata": (
        "sources set {source} {metadata} -c {collection}",
        "PATCH /v1/collections/{collection}/source?name={source}",
    ),
    "move_source": (
        "sources move {source} --from {from_col} --to {to_col}",
        "POST /v1/collections/{from_col}/sources/move",
    ),
    "delete_source": (
        "sources delete {source} -c {collection} --yes",
        "DELETE /v1/collections/{collection}/source?name={source}",
    ),
    "delete_sources": ("", "POST /v1/collections/{collection}/sources/delete"),
}
"""The command and the request of methods of a library; other arguments are options, and values of the body."""
IN_BODY = {"new_name": "name", "to_col": "to"}


def words_of(command: str, options: Mapping[str, Any]) -> str:
    """A command with these options, of which the required one has no name."""
    words = [command]
    for name, value in options.items():
        text = shlex.quote(value if isinstance(value, str) else json.dumps(value))
        is_argument = name in ("query", "pattern") or (name == "source" and command != "grep")
        option = f"--{name.replace('_', '-')}"
        words.append(text if is_argument else option if value is True else f"{option} {text}")
    return " ".join(words)


def does(method: str, *, typed: bool = True, **arguments: Any) -> Operation:
    """A call of a method of the library; ``typed``: a person can type the same."""
    command, request = METHODS[method]
    typed_as = {key: shlex.quote(str(value)) for key, value in arguments.items()}
    typed_as["metadata"] = shlex.join(f"{key}:={json.dumps(one)}" for key, one in arguments.get("metadata", {}).items())
    options = {key: value for key, value in arguments.items() if f"{{{key}}}" not in command}
    shell = words_of(command.format(**typed_as), options) + " --yes" * ("overwrite" in options)
    verb, path = request.split(" ")
    body = {IN_BODY.get(key, key): one for key, one in arguments.items() if f"{{{key}}}" not in path}
    path = path.format(**{key: quote(str(value), safe="") for key, value in arguments.items()})
    http = (verb, path, {"json": body} if verb in ("POST", "PATCH") else {})
    return Operation(lambda it: getattr(it.library, method)(**arguments), shell * (typed and bool(command)), http)


def writes(source: str, text: str, collection: str, **more: Any) -> Operation:
    """An ingest of a text."""
    body = {"collection": collection, "sources": [{"source": source, "text": text, **more}]}
    return Operation(
        lambda it: it.library.ingest_text(text, source, collection, **more),
        http=("POST", "/v1/ingest/texts", {"json": body}),
    )


def ingests(method: str, path: Any, collection: str = "tea") -> Operation:
    """An ingest of files, whose paths a server does not learn."""
    return Operation(lambda it: getattr(it.library, method)(path, collection))


def searching(*, model: bool = False, doors: str = "shell http", **options: Any) -> Operation:
    """A search; ``model``: a model can ask for the same."""
    asked = {key: value for key, value in options.items() if key not in ("technique", "top_k")}
    return Operation(
        lambda it: it.search(**options),
        words_of("search", options) * ("shell" in doors),
        ("POST", "/v1/search", {"json": options}) if "http" in doors else None,
        ("search_library", asked) if model else None,
        words=options.get("technique") != "naive",
        seen=passages if model else lambda value: value,
    )


def passages(value: Any) -> Any:
    """Ids and texts of a result, as a model gets them too."""
    rows = value["results"] if "results" in value else value["documents"]
    return [(one["id"], one.get("text", one.get("content"))) for one in rows]


def routing(query: str, technique: str | None = None) -> Operation:
    """A route, of which the server and the shell tell the query and the technique too."""

    def run(it: Any) -> Any:
        if isinstance(it, RemoteWorkspace):
            return asdict(it.route(query, technique))
        return routing_technique(it.registry, technique)[1].route(query).detail()

    options = {"query": query} | ({"technique": technique} if technique else {})
    http = ("POST", "/v1/route", {"json": options})
    return Operation(run, words_of("route", options), http, seen=lambda value: {**value, "query": "", "technique": ""})


def reading(name: str, /, shell: str = "", seen: Callable[[Any], Any] = lambda value: value, **asked: Any) -> Operation:
    """A tool that reads texts; a command has the largest answer."""
    arguments = asked | ({} if name == "check_quotes" else {"max_tokens": 50_000})

    def run(it: Any) -> Any:
        if isinstance(it, RemoteWorkspace):
            return it.call_tool(name, **arguments)
        return to_json(READING[name].run(Reach(it.library), READING[name].request(**arguments)))

    http = ("POST", f"/v1/tools/{name}", {"json": arguments})
    return Operation(run, shell or words_of(name, asked), http, (name, arguments), seen=seen)


def listed(value: Any) -> Any:
    """Collection and name of each source."""
    rows = [one for one in value["sources"] if one.get("chunks", 1)]
    return [(one["collection"], one.get("source_file", one.get("source"))) for one in rows]


def unsearchable(value: Any) -> Any:
    """Collection, name and reason of each file that is not searchable, as a model gets them too."""
    if "folders" in value:
        rows = [
            (one["collection"], one["source_file"], f"{one['kind']}: {one['reason']}") for one in value["unsearchable"]
        ]
        return sorted(rows), value["folders"]
    return [
        (one["collection"], one["source"], one["unsearchable"]) for one in value["sources"] if one["unsearchable"]
    ], []


def explaining(query: str, expected: str) -> Operation:
    return Operation(
        lambda it: asdict(explain(it.library, SearchRequest(query, technique="bm25"), expected)),
        f"why {query!r} -t bm25 --expect {expected!r}",
        remote=False,
        words=True,
    )


YEAR = {"year": {"$gte": 2026}}
MANY = {"queries": ["rain", "tea"], "technique": "naive", "top_k": 2}
QUESTION = {"query": "how hot is the water for green tea?", "collection": "tea", "top_k": 2}
OPERATIONS = {
    "search by meaning": searching(query="how hot should the water be?", technique="naive", top_k=2),
    "search by words": searching(query="green tea", technique="bm25", top_k=3, model=True),
    "search a word that is nowhere": searching(query="green quinces", technique="bm25", model=True),
    "search by both": searching(query="will it rain", technique="hybrid", collection="weather"),
    "search by default": searching(query="clear skies"),
    "search a phrase": searching(
        query='"cold front" snow', technique="bm25", collection="weather", top_k=3, model=True
    ),
    "search within": searching(query="rain", technique="bm25", top_k=3, where=YEAR, collection="weather", model=True),
    "follow up": searching(query="and black?", technique="bm25", top_k=3, previous="hot green tea?", model=True),
    "search in vain": searching(query="submarine", technique="bm25", top_k=3, model=True),
    "search with a route": searching(query="compost for soil", technique="routed", top_k=3),
    "search many": Operation(
        lambda it: {"results": [plain(one) for one in it.search_many(**MANY)]},
        http=("POST", "/v1/search/many", {"json": MANY}),
    ),
    "answer": Operation(
        lambda it: it.answer(**QUESTION),
        words_of("ask", QUESTION),
        ("POST", "/v1/answer", {"json": QUESTION}),
        words=True,
    ),
    "route": routing("compost for soil"),
    "techniques": Operation(
        lambda it: {"techniques": list(map(asdict, describe_techniques(it.registry))), "broken": it.registry.broken},
        "techniques",
        ("GET", "/v1/techniques", {}),
        remote=False,
        words=True,
    ),
    "collections": Operation(
        lambda it: {"collections": it.library.list_collections()},
        "collections list",
        ("GET", "/v1/collections", {}),
    ),
    "sources": Operation(
        lambda it: {"collection": None, "sources": it.library.list_sources_detail()},
        "sources list",
        ("GET", "/v1/sources", {}),
        ("sources", {}),
        seen=listed,
    ),
    "sources of a collection": Operation(
        lambda it: {"collection": "tea", "sources": it.library.list_sources_detail("tea")},
        "sources list -c tea",
        ("GET", "/v1/collections/tea/sources", {}),
        seen=lambda value: value["sources"],
    ),
    "unsearchable": Operation(
        lambda it: {
            "collection": None,
            "unsearchable": list(map(asdict, it.library.unsearchable())),
            "folders": it.library.ingested_folders(),
        },
        "sources list --unsearchable",
        ("GET", "/v1/unsearchable", {}),
        ("sources", {}),
        words=True,
        seen=unsearchable,
    ),
    "some sources": reading(
        "sources", """sources list --name 'g*' --where '{"year": 2026}'""", listed, name="g*", where={"year": 2026}
    ),
    "a source": Operation(
        lambda it: asdict(it.library.source("green.md", "tea")),
        http=("GET", "/v1/collections/tea/source", {"params": {"name": "green.md"}}),
        seen=lambda value: {key: one for key, one in value.items() if key not in ("chunks", "chunk_count")},
    ),
    "count": Operation(lambda it: [it.library.count(), it.library.count("tea")]),
    "orphans": Operation(
        lambda it: {"sources": list(map(asdict, it.library.orphans()))}, http=("GET", "/v1/orphans", {})
    ),
    "grep": reading("grep", pattern="tea"),
    "grep words in any case": reading("grep", pattern="TEA", words=True, ignore_case=True, context=1),
    "grep a pattern": reading("grep", pattern=r"\bfour\b|snow", regex=True, source="*.md"),
    "grep to count": reading("grep", pattern="e", count=True, collection="weather"),
    "grep sources": reading("grep", pattern="rain", sources_only=True, where={"year": 2026}),
    "read": reading("read", source="green.md"),
    "read from a line": reading("read", source="green.md", line=3, lines=2, collection="tea"),
    "read at a place": reading("read", source="green.md", place={"heading_context": "Black tea"}),
    "outline": reading("outline", source="green.md"),
    "check quotations": reading("check_quotes", "check answer.md", answer=ANSWER),
    "check strictly": reading("check_quotes", "check answer.md --strict", answer=ANSWER, strict=True),
    "why": explaining("green tea", "fronts.txt"),
}
METADATA = {"year": 2027, "kind": "leaf", "tags": None}
FOLDER = Operation(
    lambda it: it.library.ingest_folder("files", "notes"), "ingest files -c notes", ("POST", "/v1/ingest/files", {})
)
STEPS = {
    "create": does("create_collection", name="notes", description="What I wrote"),
    "describe": does("update_description", name="tea", description="All about it", display_name="Teas"),
    "ingest": FOLDER,
    "ingest again": FOLDER,
    "ingest a change": FOLDER,
    "ingest a text": writes("a/b.txt", "one\r\ntwo", "notes", metadata={"year": 2026}),
    "ingest a file": ingests("ingest_file", "files/leaves/oolong.txt"),
    "ingest a file again": ingests("ingest_file", "files/leaves/oolong.txt"),
    "ingest a zip file and bytes": ingests("ingest_paths", ["tea.zip", SourceBytes(b"# Note\n\nA pot.", "note.md")]),
    "ingest them again": ingests("ingest_paths", ["tea.zip", SourceBytes(b"# Note\n\nA pot.", "note.md")]),
    "ingest a loss": Operation(FOLDER.python, FOLDER.shell),
    "prune": Operation(
        lambda it: it.library.ingest_folder("files", "notes", prune=True), "ingest files -c notes --prune --yes"
    ),
    "set metadata": does("set_metadata", source="green.md", collection="tea", metadata=METADATA),
    "move": does("move_source", source="green.md", from_col="tea", to_col="notes"),
    "rename": does("rename_collection", name="notes", new_name="letters"),
    "ingest a text again": writes("green.md", "Another tea.", "tea"),
    "move over another": does("move_source", source="green.md", from_col="tea", to_col="letters", overwrite=True),
    "delete a source": does("delete_source", source="leaves/oolong.txt", collection="letters"),
    "delete sources": does("delete_sources", sources=["shops/boxes.txt"], collection="tea"),
    "delete a collection": does("delete_collection", name="letters"),
}
BEFORE = {
    "ingest a change": lambda: put(Path("files/black.md"), b"Matcha is whisked with a bamboo brush."),
    "ingest a zip file and bytes": lambda: ZipFile("tea.zip", "w").write("files/id_rsa", "green.txt"),
    "ingest a loss": lambda: Path("files/black.md").unlink(),
}
"""What changes in the folder before a step."""
REFUSED: dict[tuple[type[Exception], int], dict[str, Operation]] = {
    (errors.EmptyQueryError, 400): {"blank query": searching(query=" ")},
    (errors.InvalidLimitError, 422): {
        "no results": searching(query="x", top_k=0, doors=""),
        "too many results": searching(query="x", top_k=10_000, doors=""),
    },
    (errors.InvalidFilterError, 400): {
        "empty condition": searching(query="x", where={}),
        "unknown operator": searching(query="x", where={"year": {"$near": 1}}),
        "other type": searching(query="x", technique="naive", where={"year": "2026"}),
    },
    (errors.QueryError, 400): {"why no page": explaining("tea", "green.md:page 7")},
    (errors.UnknownTechniqueError, 404): {
        "unknown technique": searching(query="x", technique="nothing"),
        "unknown router": routing("x", "nothing"),
    },
    (errors.ConfigError, 400): {"describe as nothing": does("update_description", name="tea", typed=False)},
    (errors.CollectionNotFoundError, 404): {
        "search nothing": searching(query="x", collection="nothing"),
        "list nothing": does("list_sources_detail", collection="nothing"),
        "count a path": Operation(lambda it: it.library.count("a/b")),
        "describe nothing": does("update_description", name="nothing", description="x"),
        "rename nothing": does("rename_collection", name="nothing", new_name="x"),
        "delete nothing": does("delete_collection", name="nothing"),
        "move to nothing": does("move_source", source="green.md", from_col="tea", to_col="nothing"),
        "write to nothing": writes("x", "x", "nothing"),
        "ingest to nothing": ingests("ingest_folder", "files", "nothing"),
    },
    (errors.CollectionAlreadyExistsError, 409): {
        "create again": does("create_collection", name="tea"),
        "rename to another": does("rename_collection", name="tea", new_name="garden"),
    },
    (errors.InvalidCollectionNameError, 400): {
        "create a wrong name": does("create_collection", name="a b", typed=False),
        "rename to a path": does("rename_collection", name="tea", new_name="../x", typed=False),
    },
    (errors.SourceNotFoundError, 404): {
        "no source": does("source", source="x", collection="tea"),
        "delete no source": does("delete_source", source="x", collection="tea"),
        "delete one of two": does("delete_sources", sources=["green.md", "x"], collection="tea"),
        "move no source": does("move_source", source="x", from_col="tea", to_col="garden"),
        "change no source": does("set_metadata", source="x", collection="tea", metadata={"a": 1}),
        "ingest no file": ingests("ingest_file", "files/nothing.md"),
        "ingest no folder": ingests("ingest_folder", "files/nothing"),
        "ingest no path": ingests("ingest_paths", ["files/nothing"]),
    },
    (errors.SourceError, 422): {
        "move to itself": does("move_source", source="green.md", from_col="tea", to_col="tea", overwrite=True),
        "move onto another": does("move_source", source="soil.txt", from_col="garden", to_col="tea"),
        "ingest a folder as a file": ingests("ingest_file", "files"),
    },
    (errors.InvalidMetadataError, 422): {
        "change a page": does("set_metadata", source="green.md", collection="tea", metadata={"page": 1}, typed=False),
    },
    (errors.ExtractionError, 422): {"ingest a broken file": ingests("ingest_file", "files/broken.pdf")},
    (errors.UnsupportedFormatError, 422): {"ingest another format": ingests("ingest_file", "files/sound.mp3")},
}
"""Wrong calls by their error and the status of their response."""
WORDED_BY_CLIENT = {"count a path", "ingest no file", "ingest a broken file", "ingest another format"}
"""Those of which the server hears nothing, or the name of the file alone."""
WRONG_CALLS: list[tuple[str, Any, str]] = [
    ("grep", {"pattern": ""}, "pattern"),
    ("grep", {}, "pattern"),
    ("grep", {"pattern": "x" * 100_000}, "100,000"),
    ("grep", {"pattern": "a\0b"}, "NUL"),
    ("grep", {"pattern": "a\nb"}, "line end"),
    ("grep", {"pattern": "\ud800"}, "character"),
    ("grep", {"pattern": "(", "regex": True}, "regular expression"),
    ("grep", {"pattern": r"(a)\1", "regex": True}, "regular expression"),
    ("grep", {"pattern": "(a{1000}){1000}", "regex": True}, "regular expression"),
    ("grep", {"pattern": "a", "context": 21}, "context: must be 20 or less, got 21"),
    ("grep", {"pattern": "a", "max_tokens": 1}, "max_tokens"),
    ("grep", {"pattern": "a", "cursor": "zzz"}, "zzz"),
    ("grep", {"pattern": "a", "collection": "tae"}, "'tea'"),
    ("grep", {"pattern": "a", "where": {"page": {"$near": 3}}}, "$near"),
    ("grep", {"pattern": "a", "where": "{"}, "where"),
    ("grep", {"patern": "a"}, "patern"),
    ("grep", {"pattern": "a", "words": "perhaps"}, "words: must be true or false"),
    ("read", {"source": "green.md", "line": 0}, "line: must be 1 or more, got 0"),
    ("read", {"source": "green.md", "line": -1}, "line: must be 1 or more, got -1"),
    ("read", {"source": "green.md", "line": 10**9}, "1000000000"),
    ("read", {"source": "green.md", "line": "two"}, "line: must be a whole number"),
    ("read", {"source": "green.md", "lines": 0}, "lines"),
    ("read", {"source": "green.md", "line": 1, "place": {"page": 1}}, "place"),
    ("read", {"source": "cedar.pptx", "place": {"page": 9}}, "1 to 2"),
    ("read", {"source": "green.md", "place": {"page": 1}}, "page"),
    ("read", {"source": "gren.md"}, "green.md"),
    ("read", {"source": ["green.md"]}, "source: must be text"),
    ("read", {"source": ""}, "source"),
    ("outline", {"source": "nothing"}, "nothing"),
    ("sources", {"cursor": "x"}, "cursor"),
    ("check_quotes", {"answer": ""}, "text"),
    ("check_quotes", {"answer": "x" * 1_000_001}, "1,000,000"),
    ("search", {}, "query"),
    ("search", {"query": 1}, "1"),
    ("search", {"query": "x", "top_k": 3}, "top_k"),
    ("fetch", {}, "id"),
    ("fetch", {"id": "x" * 201}, "201"),
    ("fetch", {"id": "\ud800"}, "character"),
    ("fetch", {"id": "../../etc/passwd"}, "passwd"),
    ("search_library", "{", "'{'"),
    ("search_library", "[" * 100_000, "[["),
    ("search_library", "[]", "[]"),
    ("search_library", {}, "query"),
    ("search_library", {"query": " \n"}, "query"),
    ("search_library", {"query": 3}, "3"),
    ("search_library", {"query": ["tea"]}, "['tea']"),
    ("search_library", {"query": "x" * 10_001}, "10,001"),
    ("search_library", {"query": "\ud800"}, "character"),
    ("search_library", {"qeury": "x"}, "'query'"),
    ("search_library", {"query": "x", "collection": 1}, "1"),
    ("search_library", {"query": "x", "collection": "te"}, "'tea'"),
    ("search_library", {"query": "x", "cursor": "next"}, "'next'"),
    ("search_library", {"query": "x", "cursor": "WzFd"}, "cursor"),
]
"""What a model may pass to a tool, with a part of the answer that says what is wrong."""
CALLS = [(*one.mcp, "") for one in OPERATIONS.values() if one.mcp] + WRONG_CALLS


# The doors


@contextmanager
def house_in(root: Path, store: str, request: pytest.FixtureRequest) -> Iterator[House]:
    """A workspace in the folder, on the store, filled, served and open."""
    with ExitStack() as stack:
        writer = stack.enter_context(OpenAIServer("small", accent="vllm"))
        (root / "config").mkdir(parents=True)
        config = {
            "models": f'generators: {{writer: {{use: openai, url: "{writer.url}", model: small}}}}\n',
            "documents": f"embed_model: ragistry.testing.hashed:HashingEmbedder\ncollection: c{uuid4().hex}\n",
        }
        if store == "postgres":
            config["vector_stores"] = f"store: {{use: postgres, url: '{request.getfixturevalue(store).url}'}}\n"
        if store == "chroma":
            config["vector_stores"] = f"store: {{use: chroma, host: '{request.getfixturevalue(store).url}'}}\n"
        for name, text in config.items():
            (root / "config" / f"{name}.yaml").write_text(text, encoding="utf-8")
        for name, content in FILES.items():
            put(root / "files" / name, content)
        (root / "answer.md").write_text(ANSWER, encoding="utf-8")
        workspace = stack.enter_context(open_workspace(root))
        fill(workspace)
        url = stack.enter_context(served(workspace))
        yield House(workspace, url, stack.enter_context(connect(url)), writer)


@cache
def slides() -> bytes:
    """One file for all houses, because it has the time at which it was made."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cedar.pptx"
        MAKERS[path.suffix](path)
        return path.read_bytes()


def fill(workspace: Workspace) -> None:
    library = workspace.library
    library.create_collection("tea", "How tea is brewed", "Tea books")
    library.create_collection("weather", "Forecasts and clouds")
    library.create_collection("garden", "Soil, compost and weeds")
    library.ingest_paths([SourceBytes(TEA.encode(), "green.md")], "tea", metadata={"year": 2026, "tags": ["a"]})
    library.ingest_text(RAIN, "fronts.txt", "weather", metadata={"year": 2026})
    library.ingest_paths([SourceBytes(b"%PDF", "broken.pdf"), SourceBytes(b"", "a\nb.md")], "weather")
    library.ingest_text("Tea is sold in small boxes of tin.", "shops/boxes.txt", "tea", metadata={"year": 1999})
    library.ingest_text("Leaves of tea make a soil too.", "soil.txt", "tea")
    library.ingest_text("Compost makes the soil of a garden loose.", "soil.txt", "garden")
    library.ingest_paths([SourceBytes(slides(), "cedar.pptx")], "garden")


@pytest.fixture(scope="module")
def house_on(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], House]]:
    """Return the house of a door, which is made once: that on its store, or that on the local one."""
    made: dict[str, House] = {}
    with ExitStack() as stack:

        def on(door: str) -> House:
            store = door if door in ("postgres", "chroma") else "local"
            if store not in made:
                made[store] = stack.enter_context(house_in(tmp_path_factory.mktemp(store), store, request))
            return made[store]

        yield on


def by_door(operations: Mapping[str, Operation]) -> pytest.MarkDecorator:
    cases = [(name, door) for name, one in operations.items() for door in one.doors()]
    return pytest.mark.parametrize(("name", "door"), cases, ids=[" - ".join(one) for one in cases])


@by_door(OPERATIONS)
def test_call_has_the_same_value_at_every_door(
    name: str,
    door: str,
    house_on: Callable[[str], House],
    ragistry: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operation, here, there = OPERATIONS[name], house_on("python"), house_on(door)
    monkeypatch.chdir(here.workspace.root)
    for writer in (here.writer, there.writer):
        writer.answers.clear()
        writer.answers.extend([SAID] * 2)
    expected, found = call("python", operation, here, ragistry), call(door, operation, there, ragistry)
    assert (expected.message, found.message) == ("", "")
    seen = operation.seen if there is here else without_abilities if door == "chroma" else lambda value: value
    assert seen(found.value) == seen(expected.value)


@by_door({name: operation for calls in REFUSED.values() for name, operation in calls.items()})
def test_wrong_call_has_the_same_error_at_every_door(
    name: str,
    door: str,
    house_on: Callable[[str], House],
    ragistry: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [(kind, status, operation)] = [(*error, calls[name]) for error, calls in REFUSED.items() if name in calls]
    here, there = house_on("python"), house_on(door)
    monkeypatch.chdir(here.workspace.root)
    expected, found = call("python", operation, here, ragistry), call(door, operation, there, ragistry)
    assert (expected.kind, "\n" in found.message) == (kind.__name__, False)
    assert found.kind == expected.kind or door == "shell"
    assert found.message == expected.message or (door == "client" and name in WORDED_BY_CLIENT)
    assert door != "http" or response(operation, here).status_code == status


def state_of(root: Path) -> Any:
    """Collections, sources and texts, as another program reads them, without paths, times, and hashes of them."""
    with open_workspace(root) as workspace:
        skipped = ("ingested_at", "source", "source_path", "source_hash")
        rows = [
            {key: one for key, one in asdict(row).items() if key not in skipped} for row in workspace.library.sources()
        ]
        texts = sorted((one.id, one.content, one.metadata["chunk_index"]) for one in workspace.store.scan())
        collections, missing = workspace.library.list_collections(), None
        if "unsearchable" in workspace.store.abilities:
            missing = sorted((one.collection, one.source_file, one.kind) for one in workspace.library.unsearchable())
        return without_abilities({"collections": collections}), rows, texts, missing


def returned(value: Any) -> Any:
    """What a call that writes returns: a number of chunks or a report, if all doors return it."""
    if not isinstance(value, dict):
        return value if isinstance(value, int) else None
    if "added" in value:  # a server names a failed source by its name, and this machine by its path
        failed = sorted((Path(one["source"]).name, one["type"]) for one in value["failed"])
        lists = {key: sorted(one) for key, one in value.items() if isinstance(one, list) and key != "failed"}
        return {**value, **lists, "failed": failed, "warnings": len(value["warnings"])}
    return value.get("chunks")


@pytest.mark.parametrize("door", ["shell", "http", "client", "postgres", "chroma"])
def test_writing_calls_do_the_same_at_every_door(
    door: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    ragistry: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with house_in(tmp_path / "here", "local", request) as here, house_in(tmp_path / "there", door, request) as there:
        if door == "shell":
            there.workspace.close()
        for name, operation in STEPS.items():
            if door == "http" and operation.shell and not operation.http:
                continue  # a folder, which a server does not see
            outcomes, states = [], []
            for at, house in (("python", here), (door, there)):
                monkeypatch.chdir(house.workspace.root)
                BEFORE.get(name, lambda: 0)()
                outcomes.append(call(at, operation, house, ragistry))
                states.append(state_of(house.workspace.root))
            expected, found = (returned(one.value) for one in outcomes)
            if operation is FOLDER and door == "http":  # which sees no folder
                expected |= {"unread": {}, "left_out": {}}
            for here_has, there_has in zip(*states, strict=True):
                assert there_has is None or (name, there_has) == (name, here_has)
            assert (name, [one.message for one in outcomes]) == (name, ["", ""])
            assert door not in ("http", "client") or str(tmp_path) not in str(outcomes[1].value)
            assert (name, found) == (name, expected) or found is None or "text" in name


def texts_for_models(tool: SearchLibraryTool, name: str, arguments: Any) -> dict[str, str]:
    """The answer of a tool as each protocol for models gives it."""
    from ragistry.tools.langchain import library_tool, reading_tools

    found = {}
    if isinstance(arguments, dict):
        [content] = in_memory(tool, lambda client: client.call_tool(name, arguments)).content
        found["MCP"] = content.text
        for one in (library_tool(tool), *reading_tools(tool)):
            if one.name == name:
                call = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
                found["LangChain"] = one.invoke(call).content
    if name in (tool.name, *READING):
        for form in (arguments, json.dumps(arguments))[: 1 + isinstance(arguments, dict)]:
            called = {"id": "1", "function": {"name": name, "arguments": form}}
            found[f"OpenAI, {type(form).__name__}"] = answer_tool_call(tool, called)["content"]
    return found


@pytest.mark.parametrize(("name", "arguments", "value"), CALLS, ids=[f"{one[0]} {one[1]!s:.60}" for one in CALLS])
def test_every_protocol_gives_a_model_the_same_answer(
    name: str, arguments: Any, value: str, house_on: Callable[[str], House]
) -> None:
    pytest.importorskip("langchain_core")
    house = house_on("local")
    tool = SearchLibraryTool(house.workspace.library, technique="bm25", n=3)
    expected = TOOLS[name].call(tool.reach, arguments)
    found = texts_for_models(tool, name, arguments)
    assert found
    assert found == dict.fromkeys(found, expected.text)
    assert expected.error is bool(value)
    if value:
        assert "\n" not in expected.text
        check_message(expected.text, value)
    if value and name in READING:
        answer = httpx.post(f"{house.url}/v1/tools/{name}", content=json.dumps(arguments), timeout=60)
        message = answer.json()["error"]["message"]
        assert answer.status_code in (400, 422)
        assert answer.status_code == 422 or message == expected.text.removeprefix("Error: ")
        assert "\n" not in message
