"""`doctor` tries each configured model, and fails where one does not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from tests.cli.conftest import Done


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[OllamaServer, OpenAIServer]]:
    (tmp_path / "config").mkdir()
    with OllamaServer() as ollama, OpenAIServer() as tei:
        (tmp_path / "config" / "models.yaml").write_text(
            f"generators:\n  writer: {{use: ollama, model: llama3.2, url: '{ollama.url}', backoff: 0.001}}\n"
            f"rerankers:\n  judge: {{use: tei, url: '{tei.url}', backoff: 0.001}}\n"
        )
        yield ollama, tei


def test_each_model_has_a_line_with_its_time(
    ragistry: Callable[..., Done], servers: tuple[OllamaServer, OpenAIServer]
) -> None:
    done = ragistry("doctor")
    assert done.code == 0, done.out
    lines = {line.split(":")[0].split(maxsplit=1)[1]: line for line in done.out.splitlines() if " ms)" in line}
    assert set(lines) == {"model", "generator writer", "reranker judge"}
    assert all(line.startswith("ok ") for line in lines.values())


@pytest.mark.parametrize("silent", [0, 1])
def test_a_model_that_does_not_answer_fails(
    ragistry: Callable[..., Done], servers: tuple[OllamaServer, OpenAIServer], silent: int
) -> None:
    servers[silent].fail_next(500, times=9, path=("/api/chat", "/rerank")[silent])
    done = ragistry("doctor")
    assert done.code == 1
    [failed] = [line for line in done.out.splitlines() if line.startswith("failed")]
    assert failed.split(":")[0].split(maxsplit=1)[1] == ("generator writer", "reranker judge")[silent]


def test_a_mistake_in_a_class_of_the_user_is_one_line(ragistry: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "models.yaml").write_text("generators: {own: {use: 'mistaken_model:Mistaken'}}")
    (tmp_path / "mistaken_model.py").write_text(
        "class Mistaken:\n    def generate(self, prompt, *, schema=None):\n        return prompt['x']\n"
    )
    done = ragistry("doctor")
    assert (done.code, "failed  generator own: raised TypeError: string indices" in done.out) == (1, True), done.out


def test_an_empty_answer_fails(ragistry: Callable[..., Done], servers: tuple[OllamaServer, OpenAIServer]) -> None:
    servers[0].answers.append(" ")
    done = ragistry("doctor")
    assert (done.code, "generator writer: the answer is empty" in done.out) == (1, True)
