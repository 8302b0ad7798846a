"""Tokens: who may do what, and that what is out of reach is as if it were not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from ragistry import Workspace, open_workspace
from ragistry.errors import ConfigError, InvalidConfigError, StoreError
from ragistry.library.ingest.source import SourceBytes
from ragistry.server.access import RIGHTS, Tokens
from ragistry.server.app import check_exposure
from tests.cli.conftest import ragistry  # noqa: F401, the fixture
from tests.conftest import write_settled
from tests.messages import refused
from tests.server.conftest import bearer, ended, serving


class Secrets(NamedTuple):
    admin: str
    reader: str
    writer: str
    tea: str
    expired: str


@pytest.fixture
def secrets(workspace: Workspace) -> Secrets:
    tokens = Tokens(workspace.root)
    past = datetime.now(UTC) - timedelta(seconds=1)
    return Secrets(
        tokens.add("admin", ["admin"]),
        tokens.add("reader", ["read"]),
        tokens.add("writer", ["write"]),
        tokens.add("tea", ["read", "write", "admin"], ["tea", "gone"]),
        tokens.add("expired", ["admin"], expires=past),
    )


@pytest.fixture
def guarded(workspace: Workspace, secrets: Secrets) -> Iterator[TestClient]:
    workspace.library.ingest_paths([SourceBytes(b"%PDF", "fronts.txt.pdf")], "weather")
    with serving(workspace) as opened:
        yield opened


BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v1/search"): {"json": {"query": "rain", "collection": "weather"}},
    ("POST", "/v1/search/many"): {"json": {"queries": ["rain", "snow"], "collection": "weather"}},
    ("POST", "/v1/answer"): {"json": {"query": "rain", "collection": "weather"}},
    ("POST", "/v1/answer/stream"): {"json": {"query": "rain", "collection": "weather"}},
    ("POST", "/v1/route"): {"json": {"query": "rain"}},
    ("POST", "/v1/collections"): {"json": {"name": "weather"}},
    ("PATCH", "/v1/collections/{collection}"): {"json": {"description": "x"}},
    ("GET", "/v1/collections/{collection}/source"): {"params": {"name": "fronts.txt"}},
    ("DELETE", "/v1/collections/{collection}/source"): {"params": {"name": "fronts.txt"}},
    ("PATCH", "/v1/collections/{collection}/source"): {
        "params": {"name": "fronts.txt"},
        "json": {"metadata": {"a": 1}},
    },
    ("GET", "/v1/unsearchable"): {"params": {"collection": "weather"}},
    ("POST", "/v1/collections/{collection}/unsearchable"): {"json": {"failed": {"a.md": "fronts.txt"}}},
    ("POST", "/v1/collections/{collection}/sources/delete"): {"json": {"sources": ["fronts.txt"]}},
    ("POST", "/v1/collections/{collection}/sources/move"): {"json": {"source": "fronts.txt", "to": "tea"}},
    ("POST", "/v1/ingest/files"): {"data": {"collection": "weather"}, "files": [("files", ("a.md", b"x"))]},
    ("POST", "/v1/ingest/texts"): {"json": {"collection": "weather", "sources": [{"source": "a", "text": "x"}]}},
    ("POST", "/v1/comparisons"): {"json": {"techniques": ["naive"]}},
}
"""What each route that takes something is asked, about a collection that the limited token is not for."""


def routes(app: Any) -> list[tuple[str, str, str]]:
    """Method, path and right of every route; a route without a right is one that anybody may ask."""
    found = []
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            found.append((method.upper(), path, operation.get("x-right", "none")))
    hidden = [(sorted(route.methods)[0], route.path, "open") for route in app.routes
              if isinstance(route, APIRoute) and not route.include_in_schema]  # fmt: skip
    return found + hidden


def ask(client: TestClient, method: str, path: str, secret: str | None, collection: str = "weather") -> Any:
    given = BODIES.get((method, path), {})
    headers = {} if secret is None else bearer(secret)
    address = path.replace("{collection}", collection).replace("{id}", "0" * 32)
    return client.request(method, address, headers=headers, **given)


def test_every_route_refuses_a_missing_wrong_or_expired_token(guarded: TestClient, secrets: Secrets) -> None:
    found = routes(guarded.app)
    assert len(found) >= 25
    for method, path, _ in found:
        if path in ("/healthz", "/readyz"):
            continue
        for secret in (None, "wrong", secrets.reader + "x", secrets.expired, ""):
            answer = ask(guarded, method, path, secret)
            assert answer.status_code == 401, (method, path)
            assert answer.json()["error"]["type"] == "AccessDeniedError"
            assert answer.headers["www-authenticate"] == "Bearer"
    for header in ("Basic " + secrets.admin, secrets.admin, "Bearer"):
        assert guarded.get("/v1/techniques", headers={"Authorization": header}).status_code == 401
    assert guarded.get("/openapi.json").status_code == 401
    assert guarded.get("/v1/techniques", headers={"Authorization": "bearer " + secrets.reader}).status_code == 200


def test_every_route_refuses_a_token_without_its_right(guarded: TestClient, secrets: Secrets) -> None:
    held = {"read": secrets.reader, "write": secrets.writer}
    for method, path, right in routes(guarded.app):
        if path in ("/healthz", "/readyz", "/openapi.json"):
            continue
        assert right in RIGHTS, f"{method} {path} names no right"
        for other, secret in held.items():
            if other != right:
                assert ask(guarded, method, path, secret).status_code == 403, (method, path, other)
        if right in held:
            assert ask(guarded, method, path, held[right]).status_code != 403, (method, path)


def test_limited_token_gets_the_answer_of_a_missing_collection(guarded: TestClient, secrets: Secrets) -> None:
    """The same status and words for one that is there and one that is not, by every route."""
    for method, path, _ in routes(guarded.app):
        if path in ("/healthz", "/readyz", "/openapi.json"):
            continue
        answer = ask(guarded, method, path, secrets.tea)
        text = answer.text
        assert "fronts.txt" not in text, (method, path)
        assert "cold front" not in text, (method, path)
        if (method, path) in BODIES or "{collection}" in path:
            assert answer.status_code in (403, 404) or path == "/v1/route", (method, path, text)
        if "{collection}" in path:
            other = ask(guarded, method, path, secrets.tea, "nothing")
            assert answer.status_code == other.status_code == 404
            assert text.replace("weather", "nothing") == other.text
            assert "'tea'" in text or "tea" in text
    assert guarded.get("/v1/collections/weather", headers=bearer(secrets.admin)).json()["chunk_count"] == 1


class Writer:
    """A generator that tells its prompt."""

    def generate(self, prompt: str, *, schema: Any = None) -> str:
        return prompt

    def stream(self, prompt: str) -> Iterator[str]:
        yield from prompt.splitlines(keepends=True)


@pytest.mark.parametrize("secret", ["tea", "reader", "writer"])
def test_streamed_answer_uses_the_collections_of_the_token(
    workspace: Workspace, guarded: TestClient, secrets: Secrets, secret: str
) -> None:
    workspace.library.generator = Writer
    asked = {"query": "a cold front brings rain", "top_k": 10}
    answer = guarded.post("/v1/answer/stream", json=asked, headers=bearer(getattr(secrets, secret)))
    if secret == "writer":
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "AccessDeniedError")
        return
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [line for line in answer.text.splitlines() if line.startswith("event:")][-1] == "event: answer"
    assert ("clear skies" in answer.text) is (secret == "reader")
    assert "eighty degrees" in answer.text


CONDITIONS: list[Any] = [
    None,
    {"collection": "weather"},
    {"collection": {"$ne": "tea"}},
    {"$or": [{"collection": "weather"}, {"collection": "tea"}]},
    {"$or": [{"collection": {"$nin": []}}, {"source_file": "fronts.txt"}]},
    {"source_file": "fronts.txt"},
]


def test_condition_stays_within_the_collections_of_the_token(guarded: TestClient, secrets: Secrets) -> None:
    headers = bearer(secrets.tea)
    for where in CONDITIONS:
        asked_together = {"queries": ["a cold front brings rain", "green tea"], "where": where, "top_k": 10}
        many = guarded.post("/v1/search/many", json=asked_together, headers=headers)
        assert [one["query"] for one in many.json()["results"]] == asked_together["queries"]
        found = [document for one in many.json()["results"] for document in one["documents"]]
        assert {one["metadata"]["collection"] for one in found} <= {"tea"}
        assert "cold front brings rain and" not in many.text
    for where, technique in product(CONDITIONS, ["naive", "bm25", "hybrid", "routed", "parent_document"]):
        asked = {"query": "a cold front brings rain", "technique": technique, "where": where, "top_k": 10}
        answer = guarded.post("/v1/search", json=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        assert {one["metadata"]["collection"] for one in answer.json()["documents"]} <= {"tea"}
        assert "fronts.txt" not in answer.text
        assert "weather" not in answer.text.replace(str(where), "")
        route = guarded.post("/v1/route", json={"query": "rain", "where": where}, headers=headers)
        assert set(route.json()["scores"]) <= {"tea"}
    assert [row["name"] for row in guarded.get("/v1/collections", headers=headers).json()["collections"]] == ["tea"]
    assert {row["collection"] for row in guarded.get("/v1/sources", headers=headers).json()["sources"]} == {"tea"}
    assert guarded.get("/v1/orphans", headers=headers).status_code == 403


def test_route_of_a_limited_token_does_not_show_that_other_collections_exist(
    guarded: TestClient, secrets: Secrets
) -> None:
    answer = guarded.post("/v1/route", json={"query": "rain", "technique": "routed"}, headers=bearer(secrets.tea))
    assert (answer.json()["rule"], answer.json()["chosen"]) == ("only target", ["tea"])


def test_limited_admin_creates_and_renames_only_its_collections(guarded: TestClient, secrets: Secrets) -> None:
    headers = bearer(secrets.tea)
    refused = guarded.post("/v1/collections", json={"name": "other"}, headers=headers)
    there = guarded.post("/v1/collections", json={"name": "weather"}, headers=headers)
    assert refused.status_code == there.status_code == 403
    assert guarded.patch("/v1/collections/tea", json={"name": "weather"}, headers=headers).status_code == 403
    assert guarded.post("/v1/collections", json={"name": "gone"}, headers=headers).status_code == 201


def test_jobs_of_other_tokens_are_hidden(guarded: TestClient, secrets: Secrets) -> None:
    text = {"collection": "tea", "sources": [{"source": "a", "text": "one"}]}
    job = guarded.post("/v1/ingest/texts", json=text, headers=bearer(secrets.writer)).json()
    ended(guarded, job, headers=bearer(secrets.writer))
    for method in ("GET", "DELETE"):
        other = guarded.request(method, f"/v1/jobs/{job['id']}", headers=bearer(secrets.tea))
        missing = guarded.request(method, f"/v1/jobs/{'0' * 32}", headers=bearer(secrets.tea))
        assert (other.status_code, missing.status_code) == (404, 404)
        assert other.text.replace(job["id"], "0" * 32) == missing.text
    assert guarded.get("/v1/jobs", headers=bearer(secrets.tea)).json() == {"jobs": []}
    assert len(guarded.get("/v1/jobs", headers=bearer(secrets.admin)).json()["jobs"]) == 1


def test_unknown_technique_of_the_package_shows_no_path(guarded: TestClient, secrets: Secrets) -> None:
    asked = {"query": "tea", "technique": "nothing"}
    for secret in (secrets.tea, secrets.reader):
        answer = guarded.post("/v1/search", json=asked, headers=bearer(secret))
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "UnknownTechniqueError")
        assert "techniques.yaml" not in answer.text


def test_limited_token_sees_no_configuration_and_no_reason_of_a_failure(workspace: Workspace, secrets: Secrets) -> None:
    (workspace.root / "config" / "techniques.yaml").write_text(
        "techniques:\n  naive: {use: naive, top_k: 3}\n  own: {use: 'own_module:Own', base: naive}\n"
        "  ranked: {use: rerank, base: naive, reranker: at_10_0_0_7}\n  wrong: {use: naive, top_k: fronts}\n",
        encoding="utf-8",
    )
    with open_workspace(workspace.root) as opened, serving(opened) as client:
        whole = client.get("/v1/techniques", headers=bearer(secrets.admin))
        assert "techniques.yaml" in whole.text
        limited = client.get("/v1/techniques", headers=bearer(secrets.tea))
    assert limited.status_code == 200
    for text in ("techniques.yaml", str(workspace.root), "own_module", "at_10_0_0_7", "fronts"):
        assert text not in limited.text
    assert limited.json()["broken"].keys() == whole.json()["broken"].keys() != set()


def test_error_of_a_job_shows_no_details_to_a_limited_token(
    guarded: TestClient, secrets: Secrets, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError(f"{workspace.root} cannot be written")

    monkeypatch.setattr(workspace.library, "carry_out", fail)
    text = {"collection": "tea", "sources": [{"source": "a", "text": "one"}]}
    for secret, told in ((secrets.tea, False), (secrets.admin, True)):
        job = guarded.post("/v1/ingest/texts", json=text, headers=bearer(secret)).json()
        ended(guarded, job, headers=bearer(secret))
        for path in (f"/v1/jobs/{job['id']}", "/v1/jobs"):
            assert (str(workspace.root) in guarded.get(path, headers=bearer(secret)).text) is told


def test_server_errors_show_no_details_to_a_limited_token(
    guarded: TestClient, secrets: Secrets, workspace: Workspace
) -> None:
    write_settled(workspace.root / "config" / "documents.yaml", "collections: 3\n")
    for secret, told in ((secrets.tea, False), (secrets.admin, True)):
        answer = guarded.post("/v1/search", json={"query": "tea"}, headers=bearer(secret))
        assert answer.status_code == 503
        assert ("documents.yaml" in answer.text) is told


def test_removed_token_is_refused_immediately(guarded: TestClient, secrets: Secrets, workspace: Workspace) -> None:
    headers = bearer(secrets.reader)
    assert guarded.get("/v1/techniques", headers=headers).status_code == 200
    path = workspace.root / "config" / "tokens.yaml"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if '"reader"' not in line]
    path.write_text("\n".join(kept), encoding="utf-8")
    assert guarded.get("/v1/techniques", headers=headers).status_code == 401
    path.write_text("tokens: [", encoding="utf-8")
    assert guarded.get("/v1/techniques", headers=bearer(secrets.admin)).status_code == 503


def test_pages_of_other_sites_are_refused_without_tokens(client: TestClient) -> None:
    assert client.get("/v1/techniques", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/v1/techniques", headers={"Host": "["}).status_code == 403
    asked = {"query": "tea"}
    assert client.post("/v1/search", json=asked, headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.post("/v1/search", json=asked, headers={"Origin": "null"}).status_code == 403
    assert client.post("/v1/search", json=asked, headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 200


def test_an_exposed_server_needs_a_token(workspace: Workspace) -> None:
    with refused(ConfigError):
        check_exposure("0.0.0.0", Tokens(workspace.root))
    with serving(workspace, exposed=True) as client:
        assert client.get("/v1/techniques").status_code == 401
    secret = Tokens(workspace.root).add("any", ["read"])
    check_exposure("0.0.0.0", Tokens(workspace.root))
    with serving(workspace, exposed=True) as client:
        assert client.get("/v1/techniques", headers=bearer(secret) | {"Host": "any.example"}).status_code == 200


def test_route_without_a_right_raises() -> None:
    from ragistry.server.route import new_router

    with refused(TypeError, "openapi_extra"):
        new_router().get("/open")(lambda: None)


def test_token_command_prints_the_secret_and_stores_its_hash(
    workspace: Workspace,
    ragistry: Callable[..., Any],  # noqa: F811
) -> None:
    done = ragistry("serve", "token", "ci", "--rights", "read,write", "--collections", "tea", "--expires", "2999-01-31")
    assert done.code == 0, done.err
    secret = done.out.strip()
    path = workspace.root / "config" / "tokens.yaml"
    assert secret not in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o777 == 0o600
    caller = Tokens(workspace.root).caller(secret)
    assert (caller.name, caller.rights, caller.collections) == ("ci", {"read", "write"}, {"tea"})
    assert ragistry("serve", "token", "1").code == 0
    assert Tokens(workspace.root).entries().keys() == {"ci", "1"}
    for code, words in (
        (1, ("ci",)),
        (2, ("x", "--rights", "all")),
        (1, ("x", "--collections", "nothing")),
        (2, ("x", "--expires", "2001-01-01")),
        (1, ("a b",)),
    ):
        ragistry("serve", "token", *words).refused(code, words[-1])


def test_invalid_tokens_file_is_reported_with_lines(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "tokens.yaml").write_text(
        "tokens:\n  a: {sha256: abc, rights: [read]}\n  b: {sha256: " + "a" * 64 + ", rights: [all]}\n",
        encoding="utf-8",
    )
    with refused(InvalidConfigError, "tokens.yaml:2", "tokens.yaml:3"):
        Tokens(tmp_path).entries()


def test_questions_of_limited_tokens_are_marked(filled_copy: Path) -> None:
    tokens = Tokens(filled_copy)
    headers = [bearer(tokens.add("reader", ["read"])), bearer(tokens.add("tea", ["read"], ["tea"]))]
    with open_workspace(filled_copy, log_questions=True) as workspace, serving(workspace) as client:
        for header in headers:
            assert client.post("/v1/search", json={"query": "green"}, headers=header).status_code == 200
            many = {"queries": ["one", "two"]}
            assert client.post("/v1/search/many", json=many, headers=header).status_code == 200
        refused_one = {"query": "rain", "collection": "weather"}
        assert client.post("/v1/search", json=refused_one, headers=headers[1]).status_code == 404
        log = workspace.library.questions
        assert log is not None
        asked = [(one.text, one.door, one.limited) for one in log.read()]
    assert asked == [(text, "server", limited) for limited in (False, True) for text in ("green", "one", "two")]
