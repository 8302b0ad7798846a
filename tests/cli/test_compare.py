"""``ragistry compare`` as a user runs it, on a small test set with the real model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.evaluation import read_run, write_beir
from tests.evaluation.small_sets import topics


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    write_beir(topics(), tmp_path / "topics")
    return tmp_path / "topics"


def test_compare_prints_the_verdict_first_and_the_files_last(ragistry: Callable, dataset: Path, tmp_path: Path) -> None:
    done = ragistry(
        "compare", "--dataset", dataset, "--technique", "naive", "--technique", "bm25", "--baseline", "bm25",
        "--measure", "nDCG@10", "--measure", "Success@1", "--json", "out/result.json", "--html", "out/result.html",
        "--markdown", "out/result.md", "--runs", "runs",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    lines = done.out.splitlines()
    assert lines[0] == found["conclusion"]
    assert [line[2:] for line in lines if line.startswith("! ")] == found["warnings"]
    assert done.out.index("! ") < done.out.index("vs baseline [95 %]") < done.out.index("control: random")
    assert set(found["techniques"]) == {"naive", "bm25"}
    assert [pair["measure"] for pair in found["pairs"]] == ["nDCG@10", "Success@1"]
    assert (tmp_path / "out" / "result.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (tmp_path / "out" / "result.md").read_text(encoding="utf-8").startswith("# Retrieval on topics")
    assert len(read_run(tmp_path / "runs" / "naive.run")) == 10
    [kept] = (tmp_path / ".ragistry" / "evaluation" / "reports").iterdir()
    assert json.loads(kept.read_text(encoding="utf-8")) == found
    written = [line for line in done.err.splitlines() if line.startswith(("wrote", "kept"))]
    assert written[:-1] == [
        f"wrote: {name}" for name in ("out/result.json", "out/result.html", "out/result.md", "runs")
    ]
    assert kept.name in written[-1]


@pytest.mark.parametrize(
    ("kind", "begin"), [("html", "<!doctype html>"), ("markdown", "# Retrieval on topics"), ("json", "{")]
)
def test_a_dash_prints_one_report(ragistry: Callable, dataset: Path, tmp_path: Path, kind: str, begin: str) -> None:
    done = ragistry("compare", "--dataset", dataset, "-t", "bm25", f"--{kind}", "-")
    assert done.code == 0, done.err
    assert done.out.startswith(begin)
    assert "control: random" in done.out or kind == "json"
    assert not (tmp_path / "-").exists()


def test_a_technique_that_fails_gives_exit_code_1(ragistry: Callable, dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "broken_technique.py").write_text(
        "class Broken:\n"
        "    def __init__(self, config): pass\n"
        "    def retrieve(self, query, **options): raise OSError('disk gone')\n"
    )
    (tmp_path / "config" / "techniques.yaml").write_text(
        "techniques:\n  bm25: {use: bm25}\n  broken: {use: 'broken_technique:Broken'}\n"
    )
    done = ragistry("compare", "--dataset", dataset)
    assert done.code == 1
    assert "x broken failed on query 'q-tea': OSError: disk gone" in done.out
    assert "bm25" in done.out
    alone = ragistry("compare", "--dataset", dataset, "-t", "broken", "--json", "-")
    assert alone.json["conclusion"] == "Every technique failed: nothing could be compared."
    assert "failed: broken failed on query" in alone.err


def test_a_grid_is_measured_and_one_variant_chosen_on_a_part_of_the_queries(ragistry: Callable, dataset: Path) -> None:
    words = ("compare", "--dataset", dataset, "-t", "hybrid", "--grid", "hybrid.weights=[1, 0],[1,2]", "-m", "nDCG@10")
    done = ragistry(*words, "--tune-on", "0.5", "--json", "-")
    assert done.code == 0, done.err
    assert list(done.json["techniques"]) == ["hybrid[weights=[1, 0]]", "hybrid[weights=[1, 2]]"]
    assert done.json["selection"]["queries_selected"] == done.json["selection"]["queries_held_out"] == 5
    sizes = ragistry("compare", "--dataset", dataset, "-t", "bm25", "--chunk-size", "40", "--json", "-")
    assert list(sizes.json["indexes"]) == ["40/6"]


def test_what_was_resumed_and_replayed_is_printed(ragistry: Callable, dataset: Path) -> None:
    words = ("compare", "--dataset", dataset, "-t", "naive", "--runs", "runs")
    assert "Resumed:" not in ragistry(*words, "--record", "models.jsonl").out
    assert "Resumed: 10 of 10 answers come from an earlier run" in ragistry(*words).out
    done = ragistry("compare", "--dataset", dataset, "-t", "naive", "--replay", "models.jsonl")
    assert "Replayed: the models' answers come from models.jsonl" in done.out


def test_every_output_is_tried_before_any_work(ragistry: Callable, dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outputs = ("--html", "topics", "--markdown", "file/x.md", "--runs", "file", "--cache", "file/c", "--seed", "-1")
    done = ragistry("compare", "--dataset", dataset, *outputs)
    assert done.code == 1
    assert "error: 5 problems:" in done.err
    assert done.err.count("cannot write the ") == 4
    assert not (tmp_path / ".ragistry").exists()


def test_without_a_name_all_that_can_search_the_test_set_are_compared(ragistry: Callable, dataset: Path) -> None:
    done = ragistry("compare", "--dataset", dataset, "--json", "-")
    assert done.code == 0, done.err
    assert set(done.json["techniques"]) >= {"naive", "bm25", "hybrid", "mmr", "parent_document"}
    assert "routed left out: it chooses between collections" in done.err


def test_a_library_is_compared_by_its_own_queries(ragistry: Callable, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nTea is steeped for two minutes.\n")
    (tmp_path / "bread.md").write_text("# Bread\n\nBread is baked for an hour.\n")
    (tmp_path / "queries.jsonl").write_text('{"text": "how long is tea steeped", "sources": ["tea.md"]}\n')
    assert ragistry("ingest", "tea.md", "bread.md", "--collection", "kitchen", "--create", "Food").code == 0
    done = ragistry("compare", "--queries", "queries.jsonl", "-t", "naive", "-t", "bm25", "-m", "RR@10", "--json", "-")
    assert done.code == 0, done.err
    assert done.json["techniques"]["bm25"]["measures"]["RR@10"]["mean"] == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "give --dataset FOLDER, or --queries FILE"),
        (("--dataset", "nowhere"), 1, "'nowhere'"),
        (("--dataset", "topics", "--json", "-", "--html", "-"), 2, "--json - and --html - cannot be combined"),
        (("--dataset", "topics", "--tune-on", "1.5"), 2, "less than or equal to 1, got '1.5'"),
        (("--dataset", "topics", "-t", "bm52"), 1, "did you mean 'bm25'?"),
        (("--dataset", "topics", "-t", "bm25", "--grid", "bm25.k"), 1, "TECHNIQUE.PARAMETER=VALUE"),
        (("--dataset", "topics", "-m", "ndcg"), 1, "is not a measure"),
        (("--dataset", "topics", "-t", "bm25", "--baseline", "naive"), 1, "the baseline 'naive' is not compared"),
        (("--dataset", "topics", "-t", "bm25", "--replay", "none.jsonl"), 1, "no recording 'none.jsonl'"),
        (
            ("--dataset", "topics", "-t", "bm25", "--html", "topics"),
            1,
            "cannot write the html 'topics': it is a folder; give a file",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    ragistry: Callable, dataset: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = ragistry("compare", *words)
    assert done.code == code
    assert message in done.err
    assert done.err.splitlines()[-1].startswith("error: ")
