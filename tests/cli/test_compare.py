"""``ragistry compare`` as a user runs it, on a small test set with the real model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragistry.evaluation import compare, read_run, write_beir
from ragistry.testing.openai_server import OpenAIServer
from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.evaluation.small_sets import Answers, first, numbered, topics
from tests.messages import check_message

COMPARE = ("compare", "--dataset", "topics")


@pytest.fixture(autouse=True)
def _dataset(tmp_path: Path) -> None:
    write_beir(topics(), tmp_path / "topics")


def test_compare_prints_the_verdict_first_and_the_files_last(ragistry: Run, tmp_path: Path) -> None:
    done = ragistry(
        *COMPARE, "--technique", "naive", "--technique", "bm25", "--baseline", "bm25", "--measure", "nDCG@10",
        "--measure", "Success@1", "--json", "out/result.json", "--html", "out/result.html",
        "--markdown", "out/result.md", "--runs", "runs", "--answers", "answers.db",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    lines = done.out.splitlines()
    assert lines[0] == found["verdict"]
    assert [line[2:] for line in lines if line.startswith("! ")] == found["warnings"][:1]
    assert done.out.index("vs bm25 [95 %]") < done.out.index("! ") < done.out.index("--details")
    assert "random" not in done.out
    assert "first asking" not in done.out
    assert set(found["techniques"]) == {"naive", "bm25"}
    assert [pair["measure"] for pair in found["pairs"]] == ["nDCG@10", "Success@1"]
    assert (tmp_path / "out" / "result.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (tmp_path / "out" / "result.md").read_text(encoding="utf-8").startswith("# Retrieval techniques on topics")
    assert len(read_run(tmp_path / "runs" / "naive.run")) == 10
    [kept] = (tmp_path / ".ragistry" / "evaluation" / "reports").iterdir()
    assert json.loads(kept.read_text(encoding="utf-8")) == found
    written = [line for line in done.err.splitlines() if line.startswith(("wrote", "kept"))]
    assert [line.split(": ")[1] for line in written[:-1]] == [
        "out/result.json", "out/result.html", "out/result.md", "runs",
    ]  # fmt: skip
    assert kept.name in written[-1]
    again = ragistry(*COMPARE, "-t", "naive", "--answers", "answers.db", "--markdown", "-")
    assert again.out.startswith("# Retrieval techniques on topics")
    assert "of its first asking: naive" in again.out
    anew = ragistry(*COMPARE, "-t", "naive", "--no-answers", "--markdown", "-")
    assert "of its first asking" not in anew.out
    assert not (tmp_path / "-").exists()


def test_run_of_another_program_is_a_contender(ragistry: Run, tmp_path: Path) -> None:
    ragistry(*COMPARE, "-t", "bm25", "--runs", "runs", "--json", "-")
    done = ragistry(*COMPARE, "-t", "bm25", "--run", "theirs=runs/bm25.run", "--json", "-")
    assert done.json["techniques"]["theirs"]["same_as"] == "bm25"
    alone = ragistry(*COMPARE, "--run", "theirs=runs/bm25.run", "--json", "-")
    assert list(alone.json["techniques"]) == ["theirs"]
    with OpenAIServer("small") as server:  # it has no such path
        failed = ragistry(*COMPARE, "-t", "bm25", "--run", f"theirs={server.url}/search", "--json", "-")
    assert (failed.code, list(failed.json["techniques"])) == (1, ["bm25"])
    assert f"{server.url} answered 404" in failed.json["failures"]["theirs"]["error"]
    for wrong in ("theirs", "=runs/bm25.run", "theirs=", "bm25=runs/bm25.run"):
        failed = ragistry(*COMPARE, "-t", "bm25", "--run", wrong)
        assert failed.code == 2
        assert wrong.partition("=")[0] in failed.err


def report(name: str, techniques: Sequence[str], queries: int = 10, depth: int | None = None) -> Any:
    """Write the report of a comparison of systems that are all right, except for ``naive``, and return it."""
    systems = {one: Answers(first if one == "bm25" else lambda number: 1 + number % 2) for one in techniques}
    found = compare(systems, numbered(queries), "nDCG@10", depth=depth, progress=False, timing_repeats=0).to_json()
    Path(name).write_text(json.dumps(found), encoding="utf-8")
    return found


def test_gate_names_what_else_differs(ragistry: Run) -> None:
    report("a.json", ["bm25", "naive"])
    report("b.json", ["bm25"], depth=150)
    report("c.json", ["bm25"], queries=9)
    for other, code in (("b.json", 0), ("c.json", 2)):
        done = ragistry("gate", "a.json", other)
        assert (done.code, done.err) == (code, "")
        check_message(done.out)
    report("d.json", ["other"])
    nothing_shared = ragistry("gate", "a.json", "d.json")
    assert (nothing_shared.code, nothing_shared.out.count("\n")) == (2, 1)
    assert nothing_shared.out.startswith("Not decided: ")


def test_gate_ends_with_0_1_or_2(ragistry: Run) -> None:
    found = report("a.json", ["bm25", "naive"])

    def write(name: str, values: dict[str, float], **changed: Any) -> None:
        found["techniques"]["bm25"]["per_query"]["nDCG@10"] = values
        Path(name).write_text(json.dumps(found | changed), encoding="utf-8")

    queries = list(found["techniques"]["bm25"]["per_query"]["nDCG@10"])
    write("worse.json", dict.fromkeys(queries, 0.5))
    passed = ragistry("gate", "a.json", "a.json", "--markdown", "summary.md")
    assert passed.code == 0
    assert Path("summary.md").read_text().startswith(f"**{passed.out.splitlines()[0]}**\n\n| technique |")
    lost = ragistry("gate", "a.json", "worse.json", "--markdown", "-")
    assert (lost.code, lost.out.startswith("**Failed: bm25 lost")) == (1, True)
    assert ragistry("gate", "worse.json", "a.json").code == 0
    assert ragistry("gate", "a.json", "worse.json", "--min-effect", "0.9").code == 0
    write("nan.json", {queries[0]: float("nan")})
    write("earlier.json", {}, techniques={"bm25": {"mean": 1}})
    write("failed.json", {}, techniques={}, failures={"bm25": {"query": "", "error": "gone"}}, pairs=[], diagnosis=[])
    Path("cut.json").write_text("{", encoding="utf-8")
    for wrong in ("nan.json", "cut.json", "nothing.json", "earlier.json", "failed.json"):
        for sides in (("a.json", wrong), (wrong, "a.json")):
            undecided = ragistry("gate", *sides)
            assert (undecided.code, undecided.err) == (2, ""), wrong
            assert undecided.out.startswith("Not decided: "), undecided.out
            assert undecided.out.count("\n") == 1, undecided.out
        ragistry("plan", wrong).refused(1, *(() if wrong == "failed.json" else (wrong,)))


def test_plan_shows_how_many_questions_a_difference_needs(ragistry: Run) -> None:
    usual = ragistry("plan")
    assert usual.code == 0, usual.err
    assert ["deviation 0.2", "785", "126", "32", "8"] in [
        re.split(r"\s{2,}", line.strip()) for line in usual.out.splitlines()
    ]
    report("a.json", ["bm25", "naive"])
    assert "naive against bm25" in ragistry("plan", "a.json").out
    report("alone.json", ["bm25"])
    ragistry("plan", "alone.json").refused(1)


def test_technique_that_fails_gives_exit_code_1(ragistry: Run, corpus: Corpus) -> None:
    broken = "class Broken:\n    def __init__(self, config): pass\n"
    broken += "    def retrieve(self, query, **options): raise OSError('disk gone')\n"
    corpus({"broken_technique.py": broken}, folder=".")
    entries = "techniques:\n  bm25: {use: bm25}\n  broken: {use: 'broken_technique:Broken'}\n"
    corpus({"techniques.yaml": entries}, folder="config")
    done = ragistry(*COMPARE)
    assert done.code == 1
    assert "x broken failed on query 'q-tea': OSError: disk gone" in done.out
    assert "bm25" in done.out
    alone = ragistry(*COMPARE, "-t", "broken", "--json", "-")
    assert alone.code == 1
    check_message(alone.json["verdict"])
    check_message(alone.err.splitlines()[0], "broken", "OSError: disk gone")


def test_every_output_is_tried_before_any_work(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outputs = {"--html": "topics", "--markdown": "file/x.md", "--runs": "file", "--answers": "file/c", "--seed": "-1"}
    for option, value in outputs.items():
        done = ragistry(*COMPARE, option, value)
        assert (done.code, done.out) == (1, "")
        check_message(done.err, value)
    assert not (tmp_path / ".ragistry").exists()


def test_library_is_compared_by_its_own_queries_with_all_techniques(ragistry: Run, corpus: Corpus) -> None:
    corpus({"tea.md": "# Tea\n\nTea is steeped for two minutes.\n", "bread.md": "# Bread\n\nBread is baked.\n"})
    corpus({"queries.jsonl": '{"text": "how long is tea steeped", "sources": ["tea.md"]}\n'}, folder=".")
    assert ragistry("ingest", "documents", "--collection", "kitchen", "--create", "Food").code == 0
    done = ragistry("compare", "--queries", "queries.jsonl", "-m", "RR@10", "--json", "-")
    assert done.code == 0, done.err
    assert done.json["techniques"]["bm25"]["measures"]["RR@10"]["mean"] == 1
    assert set(done.json["techniques"]) >= {"naive", "bm25", "hybrid", "graph", "parent_document"}
