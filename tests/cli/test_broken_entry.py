"""A mistake in one entry of techniques.yaml: it blocks that technique and what builds on it, and nothing else."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message

TECHNIQUES = """\
default: naive
techniques:
  naive: {use: naive}
  wrong: {use: bm25, top_kk: 3}
  over: {use: newest, base: wrong}
  a: {use: newest, base: b}
  b: {use: newest, base: a}
"""
PLACE = "techniques.yaml:4: techniques.wrong.top_kk"


def test_broken_entry_blocks_only_itself_and_what_builds_on_it(filled: Run, corpus: Corpus) -> None:
    corpus({"techniques.yaml": TECHNIQUES}, folder="config")
    assert filled("ingest", "tea.txt").code == 0
    assert filled("search", "tea", "--json").json["total_results"] == 1
    for name, named in {"wrong": PLACE, "over": PLACE, "a": "b", "b": "a"}.items():
        filled("search", "tea", "-t", name).refused(1, named)
    listed = filled("techniques", "--json").json
    assert ([row["name"] for row in listed["techniques"]], "wrong" in listed["broken"]) == (["naive"], True)
    check_message(filled("techniques").err, PLACE)
    examined = filled("doctor")
    assert (examined.code, PLACE in " ".join(examined.out.split())) == (1, True), examined.out
    corpus({"techniques.yaml": TECHNIQUES.replace("default: naive", "default: wrong")}, folder="config")
    filled("search", "tea").refused(1, PLACE)
