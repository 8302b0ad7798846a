"""The API keeps to its own description: a few of the requests of `benchmarks.fuzz`, in this process, find no fault."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("schemathesis")
pytest.importorskip("benchmarks")

import schemathesis

from benchmarks.fuzz import ask
from ragistry import open_workspace
from ragistry.errors import ServerBusyError, StoreError
from ragistry.library.service import DocumentService
from tests.server.conftest import serving

EXAMPLES = 2
"""Of each route and mode; the benchmark sends more, as several callers, to a server in a process of its own."""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("described")
    shutil.copytree(filled, folder, dirs_exist_ok=True)
    with open_workspace(folder) as workspace, serving(workspace) as client:
        yield schemathesis.openapi.from_asgi("/openapi.json", client.app, headers={"Host": "127.0.0.1"})


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_generated_requests_find_no_server_errors(schema: Any, mode: Any) -> None:
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 20
    found = {one.label: ask(one, mode, EXAMPLES, headers={"Host": "127.0.0.1"}) for one in operations}
    assert [fault for outcome in found.values() for fault in outcome.faults] == []
    assert not any(outcome.statuses[401] + outcome.statuses[403] for outcome in found.values())
    if mode is schemathesis.GenerationMode.POSITIVE:
        assert found["POST /v1/search"].statuses[200]
        assert found["GET /v1/collections"].statuses[200]


@pytest.mark.parametrize(("error", "is_fault"), [(StoreError, True), (ServerBusyError, False)])
def test_generated_requests_count_server_errors_except_busy(
    schema: Any, monkeypatch: pytest.MonkeyPatch, error: type[Exception], is_fault: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("no")

    monkeypatch.setattr(DocumentService, "sources", fail)
    mode = schemathesis.GenerationMode.POSITIVE
    outcome = ask(schema["/v1/sources"]["GET"], mode, 10, headers={"Host": "127.0.0.1"})
    count = outcome.statuses[503]
    assert count
    assert (outcome.failed, len(outcome.faults), outcome.busy) == ((count, count, 0) if is_fault else (0, 0, count))
