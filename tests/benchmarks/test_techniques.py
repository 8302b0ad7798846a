"""The evidence for techniques: what is compared, what is said of it, and where that is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import techniques
from benchmarks.techniques import BASELINES, BEGIN, END, PAGE, WHEN, evidence, measurable
from ragistry.evaluation import compare
from tests.evaluation.small_sets import Answers, first, numbered


def test_every_technique_that_is_compared_has_a_sentence_on_when_to_use_it() -> None:
    names, left_out = measurable()
    assert set(BASELINES) <= set(names)
    assert not set(names) & set(left_out)
    assert [name for name in names if not ("se it" in WHEN.get(name, "") and "; not " in WHEN[name])] == []


def test_a_row_has_the_difference_to_each_baseline_and_whether_it_is_significant(tmp_path: Path) -> None:
    ranks = {"naive": lambda _: 2, "bm25": lambda number: 1 + number % 2, "hybrid": lambda _: 2, "rerank": first}
    given = {name: Answers(rank) for name, rank in ranks.items()}
    text = evidence({"set": compare(given, numbered(40), ["nDCG@10"], workspace=tmp_path)}, list(given), {})
    row = next(line for line in text.splitlines() if line.startswith("| `rerank` | 1.000 ["))
    assert "**+0.369, p < 0.001** | **+0.185, p < 0.001** |" in row
    assert "] | same rankings as `naive` |" in next(
        line for line in text.splitlines() if line.startswith("| `hybrid` | 0.631 [")
    )
    assert "Holm over 3 pairs" in text


def test_only_what_stands_between_the_marks_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAGE.read_text(encoding="utf-8").count(BEGIN) == 1
    page = tmp_path / "page.md"
    page.write_text(f"before {END}\n{BEGIN}old\n{END}\nafter {END}\n", encoding="utf-8")
    monkeypatch.setattr(techniques, "PAGE", page)
    techniques.write("new")
    assert page.read_text(encoding="utf-8") == f"before {END}\n{BEGIN}\nnew\n\n{END}\nafter {END}\n"
