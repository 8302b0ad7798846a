"""OpenTelemetry: spans for search, route, embed and ingest where its SDK is loaded, without the user's text."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace as api
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragistry import Workspace
from ragistry.errors import EmptyQueryError

EXPORTER = InMemorySpanExporter()


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    """A process has one provider, for good."""
    provider = api.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        api.set_tracer_provider(provider)
    EXPORTER.clear()
    return EXPORTER


def named(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_routed_search_is_a_tree_of_spans(workspace: Workspace, exporter: InMemorySpanExporter) -> None:
    workspace.search("a secret about green leaves", technique="routed")
    spans = named(exporter)
    assert {"ragistry.search", "ragistry.routed", "ragistry.route", "ragistry.embed"} <= spans.keys()
    assert spans["ragistry.search"].attributes == {"technique": "routed"}
    assert len({span.context.trace_id for span in spans.values() if span.context}) == 1
    assert not any("secret" in span.to_json() for span in spans.values())


def test_an_ingest_is_a_span_with_its_embedding(workspace: Workspace, exporter: InMemorySpanExporter) -> None:
    workspace.library.ingest_text("A secret about oolong.", "oolong.txt", "tea")
    spans = named(exporter)
    parent, ingest = spans["ragistry.embed"].parent, spans["ragistry.ingest"].context
    assert parent is not None
    assert ingest is not None
    assert parent.trace_id == ingest.trace_id
    assert not any("secret" in span.to_json() for span in spans.values())


def test_span_of_an_error_has_only_its_type(workspace: Workspace, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(EmptyQueryError):
        workspace.search(" ")
    span = named(exporter)["ragistry.search"]
    assert (span.attributes or {})["error.type"] == "EmptyQueryError"
    assert span.events == ()


def test_opentelemetry_is_not_loaded_without_its_sdk() -> None:
    code = (
        "import sys\nfrom ragistry.trace import collect, span, stage\n"
        "with span('a', b=1), collect() as trace, stage('c'):\n    pass\n"
        "print(len(trace.stages()), any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 False\n"
