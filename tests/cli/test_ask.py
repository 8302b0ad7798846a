"""``ragistry ask``: with a generator an answer with citations, without one the results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from ragistry.library.asked import FILE, QuestionLog
from ragistry.testing.openai_server import OpenAIServer
from tests.cli.conftest import TEA, Run, on_terminal
from tests.conftest import Corpus
from tests.messages import check_message


@pytest.fixture
def writer(corpus: Corpus) -> Iterator[OpenAIServer]:
    """The server of the generator that the workspace has."""
    with OpenAIServer("small", accent="vllm") as server:
        models = f'generators: {{writer: {{use: openai, url: "{server.url}", model: small}}}}'
        corpus({"models.yaml": models}, folder="config")
        yield server


def test_ask_without_generator_shows_the_results(filled: Run) -> None:
    done = filled("ask", "water temperature for green tea")
    assert (done.code, done.out.splitlines()[0]) == (0, "1. tea.txt")
    check_message(done.err)
    answer = filled("ask", "green tea", "--json").json
    assert (answer["status"], answer["answer"], answer["sentences"]) == (None, None, [])
    assert answer["documents"]


def test_ask_prints_the_answer_with_citations_and_its_sources(filled: Run, writer: OpenAIServer) -> None:
    with Path("config", "documents.yaml").open("a", encoding="utf-8") as file:
        file.write("\nlog_questions: true\n")
    writer.answers.append(f"{TEA[:-1]} [1]. The moon is made of cheese [1].")
    done = filled("ask", "zzzqqq xyzzy", "-k", 2)  # the generator is asked whatever was found
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == f"{TEA[:-1]} [1]. The moon is made of cheese [1]."
    assert "1. tea.txt" in lines
    check_message(done.err, "'The moon is made of cheese.'")
    writer.answers.append("Use hot water [1].")
    answer = filled("ask", "how hot is the water for green tea", "--json").json
    assert answer["sentences"][0]["citations"] == [1]
    asked = QuestionLog(Path(".ragistry", FILE)).read()
    assert [len(one.confirmed) for one in asked] == [0, 1, 0]


@pytest.mark.parametrize(
    ("choice", "status", "code"),
    [
        ({"message": {"content": TEA}}, "complete", 0),
        ({"message": {"content": "NOT FOUND"}}, "not_found", 4),
        ({"message": {"content": TEA}, "finish_reason": "length"}, "cut", 5),
        ({"message": {"content": TEA}, "finish_reason": "content_filter"}, "filtered", 6),
        ({"message": {"content": None, "refusal": "I am sorry."}}, "refused", 7),
        ({"message": {"content": None}}, "empty", 8),
    ],
)
def test_each_end_of_an_answer_has_its_exit_code(
    filled: Run, writer: OpenAIServer, choice: dict[str, Any], status: str, code: int
) -> None:
    writer.answers += [choice, choice]
    done = filled("ask", "how hot is the water for green tea")
    assert done.code == code
    text = choice["message"]["content"] == TEA
    said = done.err.splitlines()[0] if text and code else done.out.splitlines()[0]
    check_message(said)
    assert "1. tea.txt" in done.out.splitlines()
    done = filled("ask", "how hot is the water for green tea", "--json")
    assert (done.code, done.json["status"], done.json["answer"]) == (code, status, TEA if text else None)
    assert bool(done.json["reason"]) == bool(code)


LAYOUT = """\
Steep green tea so:

1. Heat water to  eighty degrees [1].
\t- not more

```sh
kettle --degrees 80 \\
\t--for "green tea"
```

| お茶 | 温度 |
|---|---|
| 緑茶 | 80 度 [1] |

The moon is made of cheese, which nothing in any of the passages about green tea and water of eighty degrees says [1].
"""


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_answer_keeps_its_layout_and_warnings_wrap_at_words(
    filled: Run, writer: OpenAIServer, tmp_path: Path, columns: int
) -> None:
    writer.answers.extend([LAYOUT.replace("\n", "\r\n"), LAYOUT])
    code, seen = on_terminal("ask", "how hot is the water for green tea", cwd=tmp_path, columns=columns)
    answer = filled("ask", "how hot is the water for green tea", "--json").json["answer"]
    assert (code, answer) == (0, LAYOUT.rstrip())
    assert seen.startswith(LAYOUT)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    warnings = plain[len(LAYOUT) :].partition("\n\n")[0]
    assert max(map(cell_len, warnings.splitlines())) <= columns
    check_message(" ".join(warnings.split()))  # no word is broken
