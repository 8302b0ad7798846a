"""The API, route by route."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from ragistry import Workspace
from ragistry.presentation.plain import as_mapping
from ragistry.types import Document, RetrievalResult, Stage, StageScore
from tests.cli.conftest import ragistry  # noqa: F401, the fixture
from tests.server.conftest import ended


def error(answer: Any) -> tuple[int, str]:
    body = answer.json()["error"]
    assert body["message"]
    assert "\n" not in body["message"]
    return answer.status_code, body["type"]


SCORE = {"stage", "kind", "value"}
DOCUMENT = {"id", "content", "metadata", "score", "scores"}
STAGE = {
    "name", "ms", "documents_in", "documents_out", "model_calls", "tokens", "depth", "detail", "degraded",
}  # fmt: skip
SOURCE = {
    "collection", "source_file", "chunk_count", "ingested_at", "source", "source_path", "source_hash", "lost",
    "metadata", "set_keys", "waiting",
}  # fmt: skip
RESULT = {"query", "documents", "total_results", "search_time_ms", "trace", "unknown_words"}
ANSWER = {"unknown_words", "query", "status", "answer", "reason", "sentences", "documents", "degraded"}
TECHNIQUE = {"name", "use", "default", "bases", "config", "description", "unusable"}
ROUTE = {"query", "technique", "router", "rule", "chosen", "scores", "margin", "fit", "note"}
REPORT = {
    "collection", "added", "updated", "skipped", "deleted", "failed", "vanished", "warnings", "unread", "left_out",
    "chunks", "embedded",
}  # fmt: skip


class Writer:
    """A generator with one answer."""

    def generate(self, _prompt: str, *, schema: Any = None) -> str:
        return "Steep green tea in water [1]."


def test_json_has_the_fields_that_scripts_read(
    client: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fields of JSON are those of the types, so a renamed field of a type would change what scripts read."""
    monkeypatch.setattr(workspace.library, "generator", Writer)
    answer = client.post("/v1/answer", json={"query": "green tea", "collection": "tea"}).json()
    result = client.post("/v1/search", json={"query": "green tea", "technique": "hybrid"}).json()
    [source] = client.get("/v1/collections/tea/sources").json()["sources"]
    whole = client.get("/v1/collections/tea/source", params={"name": source["source_file"]}).json()
    texts = {"collection": "tea", "sources": [{"source": "a.txt", "text": "Black tea."}]}
    job = ended(client, client.post("/v1/ingest/texts", json=texts).json())
    techniques = client.get("/v1/techniques").json()["techniques"]
    route = client.post("/v1/route", json={"query": "green tea"}).json()
    [sentence] = answer["sentences"]
    for values, fields in (
        (result, RESULT),
        (result["documents"][0], DOCUMENT | {"place"}),
        (result["documents"][0]["scores"][0], SCORE),
        (result["trace"][0], STAGE),
        (answer, ANSWER),
        (answer["documents"][0], DOCUMENT | {"place"}),
        (sentence, {"text", "citations", "supported"}),
        (source, SOURCE),
        (whole, SOURCE),
        (techniques[0], TECHNIQUE),
        (route, ROUTE),
        (job["report"], REPORT),
    ):
        assert values.keys() == fields
    models = client.get("/openapi.json").json()["components"]["schemas"]
    described = {
        "SearchResponse": RESULT,
        "GeneratedAnswer": ANSWER,
        "SourceModel": SOURCE,
        "IngestReportModel": REPORT,
    }
    for name, fields in described.items():
        assert set(models[name]["required"]) == models[name]["properties"].keys() == fields


VALUES = {
    "nan": math.nan, "infinite": -math.inf, "day": date(2024, 5, 6), "time": datetime(2024, 5, 6, 7, 8),
    "numpy": np.float64(0.25), "list": (1, [None, True]), "deep": {"of": {"a": "b"}},
}  # fmt: skip


def test_special_values_in_metadata_have_a_json_form(
    client: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A technique of a user may return any values, also numbers of NumPy as scores and kinds of its own."""
    scores = (StageScore("own", "splade", np.float32(0.5)),)
    document = Document("text", VALUES, np.float32(0.5), "1", scores)  # type: ignore[arg-type]
    result = RetrievalResult("tea", [document], 1, 1.0, (Stage("own", 1.0, detail={"n": (1, 2)}),))
    printed = as_mapping(result, "english")
    assert printed["documents"][0]["metadata"] == VALUES
    text = json.dumps(printed, default=str)
    for part in ('"nan": NaN', '"infinite": -Infinity', '"day": "2024-05-06"', '"time": "2024-05-06 07:08:00"'):
        assert part in text
    monkeypatch.setattr(workspace.library, "run_search", lambda _: result)
    served = client.post("/v1/search", json={"query": "tea"}).json()
    [found] = served["documents"]
    assert found["metadata"] == {
        "nan": None, "infinite": None, "day": "2024-05-06", "time": "2024-05-06T07:08:00", "numpy": 0.25,
        "list": [1, [None, True]], "deep": {"of": {"a": "b"}},
    }  # fmt: skip
    assert (found["score"], found["scores"]) == (0.5, [{"stage": "own", "kind": "splade", "value": 0.5}])
    assert served["trace"][0]["detail"] == {"n": [1, 2]}


def test_invalid_request_has_status_and_type(client: TestClient) -> None:
    bodies: list[tuple[Any, tuple[int, str]]] = [
        ({"query": "tea", "top_k": 0}, (422, "RequestError")),
        ({"query": "tea", "top_k": "3"}, (422, "RequestError")),
        ({"query": "tea", "tpo_k": 3}, (422, "RequestError")),
        ({}, (422, "RequestError")),
    ]
    for body, expected in bodies:
        assert error(client.post("/v1/search", json=body)) == expected, body
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/search", content=b'{"query": "\\ud800"}', headers=headers)
    assert answer.status_code in (400, 422)
    assert error(client.post("/v1/search", content=b"{", headers=headers))[0] == 422
    assert error(client.get("/v1/nothing")) == (404, "RequestError")
    for path, method, allowed in (
        ("/v1/search", "GET", "POST"),
        ("/v1/collections", "DELETE", "GET, POST"),
        ("/v1/collections/weather", "PUT", "DELETE, GET, PATCH"),
    ):
        answer = client.request(method, path)
        assert (error(answer)[0], answer.headers["Allow"]) == (405, allowed)
    assert error(client.get("/v1/jobs/nothing")) == (404, "JobNotFoundError")


def test_whole_numbers_may_have_a_point_and_blank_texts_are_described(client: TestClient) -> None:
    found = client.post("/v1/search", json={"query": "tea", "top_k": 1.0}).json()
    assert len(found["documents"]) == 1
    for number in (1.5, "1", True, 1e400):
        body = json.dumps({"query": "tea", "top_k": number})
        assert error(client.post("/v1/search", content=body)) == (422, "RequestError"), number
    models = client.get("/openapi.json").json()["components"]["schemas"]
    for model, field in (("SearchBody", "query"), ("RouteRequest", "query"), ("NewCollection", "name")):
        assert models[model]["properties"][field]["minLength"] == 1
    assert models["SearchBody"]["properties"]["top_k"]["anyOf"][0]["type"] == "integer"


def test_source_name_must_be_a_relative_path(client: TestClient) -> None:
    for name in ("../up.md", "/etc/passwd.md", "a//b.md", "a/./b.md", "a/../b.md", "a\nb.md"):
        part = f'--x\r\ncontent-disposition: form-data; name="collection"\r\n\r\ntea\r\n--x\r\ncontent-disposition: form-data; name="files"; filename="{name}"\r\n\r\ntext\r\n--x--\r\n'  # noqa: E501
        headers = {"content-type": "multipart/form-data; boundary=x"}
        answer = client.post("/v1/ingest/files", content=part.encode(), headers=headers)
        assert answer.status_code in (400, 422), answer.text
    assert client.get("/v1/jobs").json() == {"jobs": []}


def test_job_compares_techniques(client: TestClient) -> None:
    queries = "\n".join(
        json.dumps({"text": text, "sources": [source]})
        for text, source in (("green leaves", "leaves/green.txt"), ("will it rain", "fronts.txt"))
    )
    accepted = client.post("/v1/comparisons", json={"techniques": ["naive", "bm25"], "queries": queries})
    assert accepted.status_code == 202, accepted.text
    job = ended(client, accepted.json())
    assert job["state"] == "done", job
    assert job["report"]["verdict"]
    assert client.get(f"/v1/jobs/{job['id']}").json() == job
    assert client.get("/v1/jobs").json()["jobs"] == [job]
    report = client.get(f"/v1/comparisons/{job['id']}/report")
    assert set(report.json()["techniques"]) == {"naive", "bm25"}
    for kind, start in (("markdown", "#"), ("html", "<!doctype html>")):
        text = client.get(f"/v1/comparisons/{job['id']}/report", params={"format": kind}).text
        assert text.lower().startswith(start)
    assert error(client.post("/v1/comparisons", json={"techniques": ["nothing"]})) == (404, "UnknownTechniqueError")
    wrong = client.post("/v1/comparisons", json={"techniques": ["naive"], "queries": "{}"}).json()
    assert ended(client, wrong)["error"]["type"] == "DatasetError"


def test_health(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize(
    "form",
    [
        {"metadata": "{"},
        {"metadata": "{}"},
        {"metadata": "[]"},
        {"metadata": '[{"page": 1}]'},
        {"metadata": '[{"a": NaN}]'},
        {"metadata": "[3]"},
        {"tables": '[{"a": {"b": 1}}]'},
        {"modified": "yesterday"},
        {"modified": ["2026-05-01", "2026-05-01"]},
        {"metadata": "[" * 100_000},
    ],
    ids=str,
)
def test_metadata_of_an_upload_are_checked_before_it_is_accepted(client: TestClient, form: dict[str, Any]) -> None:
    files = [("files", ("a.md", b"Tea."))]
    answer = client.post("/v1/ingest/files", data={"collection": "tea"} | form, files=files)
    assert answer.status_code == 422, answer.text
    assert client.patch("/v1/collections/tea/source?name=x", json={"metadata": {"a": 1}}).status_code == 404
