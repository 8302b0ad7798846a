"""``ragistry ask``: with a generator an answer with citations, without one the results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.testing.openai_server import OpenAIServer
from tests.cli.conftest import Done

Run = Callable[..., Done]
MODELS = 'generators:\n  writer: {{use: openai, url: "{url}", model: small}}\n'


@pytest.fixture
def filled(ragistry: Run, tmp_path: Path) -> Run:
    """A workspace with a collection ``notes``."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "tea.md").write_text("# Tea\n\nSteep green tea in water of eighty degrees.\n", encoding="utf-8")
    (tmp_path / "in" / "rain.txt").write_text("Rain falls from clouds.\n", encoding="utf-8")
    assert ragistry("ingest", tmp_path / "in", "--collection", "notes", "--create", "Notes").code == 0
    return ragistry


def test_without_a_generator_the_results_are_shown(filled: Run) -> None:
    done = filled("ask", "water temperature for green tea")
    assert done.code == 0
    assert "no generator is configured" in done.err
    assert done.out.startswith("1. Tea\n")
    answer = filled("ask", "green tea", "--json").json
    assert (answer["answer"], answer["sentences"]) == (None, [])
    assert answer["documents"]


def test_an_answer_has_citations_and_its_sources_below(filled: Run) -> None:
    with OpenAIServer("small", accent="vllm") as server:
        Path("config").mkdir(exist_ok=True)
        Path("config/models.yaml").write_text(MODELS.format(url=server.url), encoding="utf-8")
        server.answers.append("Steep green tea in water of eighty degrees [1]. The moon is made of cheese [1].")
        done = filled("ask", "how hot is the water for green tea", "-k", 2)
        assert done.code == 0
        lines = done.out.splitlines()
        assert lines[0] == "Steep green tea in water of eighty degrees.[1] The moon is made of cheese.[1]"
        assert "1. Tea" in lines
        assert done.err == "warning: not supported by the passages it cites: 'The moon is made of cheese.'\n"
        server.answers.append("NOT FOUND")
        done = filled("ask", "how hot is the water for green tea")
        assert done.out.startswith("Not in the documents: ")
        server.answers.append("Use hot water [1].")
        answer = filled("ask", "how hot is the water for green tea", "--json").json
        assert answer["sentences"][0]["citations"] == [1]
