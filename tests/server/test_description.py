"""The API keeps to its own description: requests that schemathesis makes from it find no fault."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ragistry import open_workspace
from tests.conftest import full_run
from tests.server.conftest import serving

EXAMPLES = 50 if full_run() else 2
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance, negative_data_rejection,
]  # fmt: skip


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("described")
    shutil.copytree(filled, folder, dirs_exist_ok=True)
    with open_workspace(folder) as workspace, serving(workspace) as client:
        yield schemathesis.openapi.from_asgi("/openapi.json", client.app, headers={"Host": "127.0.0.1"})


def answered(operation: Any, mode: Any) -> Counter[int]:
    """The statuses of answers to requests of one operation, each checked."""
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        response = case.call_and_validate(headers={"Host": "127.0.0.1"}, checks=CHECKS)
        statuses[response.status_code] += 1

    with suppress(Unsatisfiable):  # a request that takes nothing cannot be made wrong
        check()
    return statuses


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_requests_made_from_the_description_find_no_fault(schema: Any, mode: Any) -> None:
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 20
    found = {operation.label: answered(operation, mode) for operation in operations}
    assert not any(statuses[401] + statuses[403] for statuses in found.values())
    if mode is schemathesis.GenerationMode.POSITIVE:
        assert found["POST /v1/search"][200]
        assert found["GET /v1/collections"][200]
