"""Of dated versions the newest comes first, and every door says of what an older one is a version."""

from __future__ import annotations

import json
import os
import random
from itertools import product
from pathlib import Path

from ragistry import Workspace, connect
from ragistry.answers.answer import Answerer
from ragistry.evaluation import compare, read_library
from ragistry.presentation import cards_of
from ragistry.presentation.hits import spot_of
from ragistry.tools.search_library import SearchLibraryTool
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.serving import served

ITEMS = ["meals", "hotels", "taxis", "laptops", "parking", "training", "glasses", "phones", "moving", "bicycles"]
STAFF = ["drivers", "nurses", "cooks", "engineers", "guards", "clerks"]


def write_dated_pairs(folder: Path, seed: int = 1, count: int = 60) -> Path:
    """Write two versions of each of some rules, and a file of questions that only the newer ones answer.

    Names of files do not show which is newer. The date is in the front matter, in four forms, or that of the file.
    """
    draw, questions = random.Random(seed), []
    (folder / "rules").mkdir()
    for number, (item, staff) in enumerate(draw.sample(list(product(ITEMS, STAFF)), count)):
        newer = draw.randrange(2)
        for part in range(2):
            year = draw.randint(2022, 2026) if part == newer else draw.randint(2012, 2021)
            date = f"{year}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
            head = [
                f"date: {date}",
                f"date: 2011-01-01\nupdated: {date}",
                f"date: {date}T10:00:00+02:00",
                f"updated: {date[:7]}",
                "",
            ][draw.randrange(5)]
            path = folder / "rules" / f"{number}-{'ab'[part]}.md"
            path.write_text(
                f"---\n{head}\n---\n# Allowance for {item}\n\nThe allowance of {staff} for {item} is "
                f"{draw.randint(20, 900)} euros a month. Receipts are handed in {draw.choice(('online', 'on paper'))} "
                f"by day {draw.randint(2, 28)} of the month that follows. Who joins during a month gets the share of "
                f"its days. What was not claimed within {draw.randint(3, 24)} months lapses, and nothing is paid in "
                f"unpaid leave.{' Managers sign each claim.' * draw.randrange(2)}\n",
                encoding="utf-8",
            )
            os.utime(path, ((year - 1970) * 31_557_600,) * 2)
        question = {"text": f"how much may {staff} spend on {item}?", "sources": [f"{number}-{'ab'[newer]}.md"]}
        questions.append(json.dumps(question))
    (folder / "questions.jsonl").write_text("\n".join(questions), encoding="utf-8")
    return folder / "questions.jsonl"


def newer_first(workspace: Workspace, questions: Path, technique: str) -> float:
    """Return the share of questions for which the newer version stands above the older one."""
    asked = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
    above = 0
    for one in asked:
        found = [d.metadata["source_file"] for d in workspace.search(one["text"], technique, top_k=20).documents]
        pair = [name for name in found if name.partition("-")[0] == one["sources"][0].partition("-")[0]]
        above += pair[:1] == one["sources"]
    return above / len(asked)


def test_comparison_on_dated_pairs_finds_the_newer_versions(workspace: Workspace, tmp_path: Path) -> None:
    questions = write_dated_pairs(tmp_path)
    workspace.library.ingest_folder(tmp_path / "rules", "notes")
    dataset = read_library(workspace, questions)
    names = ["newest", "hybrid", "bm25"]
    found = compare(
        names, dataset, ["nDCG@10", "RR@10"], "hybrid", workspace=workspace, chunk_size="library", progress=False
    )
    means = {name: result.measures["RR@10"].mean for name, result in found.techniques.items()}
    assert means["newest"] > 0.95 > 0.85 > max(means["hybrid"], means["bm25"]), found
    assert newer_first(workspace, questions, "newest") > 0.95


def test_every_door_says_of_what_a_passage_is_an_older_version(
    workspace: Workspace,
    tmp_path: Path,
    ragistry: Run,  # noqa: F811
) -> None:
    write_dated_pairs(tmp_path, count=1)
    workspace.library.ingest_folder(tmp_path / "rules", "notes")
    found = workspace.search("allowance", "newest").documents
    assert len(found) == 2, "nothing is withheld"
    [newer, _] = [document.metadata["source_file"] for document in found]
    place, note = f"notes: {newer}, line {found[0].metadata['line']}", f"older version of notes: {newer}"
    assert [document.metadata.get("older_version_of") for document in found] == [None, place]
    with served(workspace) as url, connect(url) as remote:
        assert remote.search("allowance", "newest").documents == found
    words = ("search", "allowance", "-t", "newest", "-k", "2", "-w", workspace.root)
    assert [one["metadata"].get("older_version_of") for one in ragistry(*words, "--json").json["documents"]] == [
        None,
        place,
    ]
    assert ragistry(*words, "--full").out.count(note) == 1
    assert "older version" in ragistry(*words).out
    assert note in SearchLibraryTool(workspace.library, technique="newest").handle({"query": "allowance"})
    prompts: list[str] = []
    Answerer(lambda prompt: prompts.append(prompt) or "NOT FOUND", workspace.embedder).answer("allowance", found)
    assert prompts[0].count(f"[{note}") == 1
    parts = [part for card in cards_of(found, "allowance", "english", 360) for part in (*card.parts, *card.similar)]
    assert [note in spot_of(part.document, part.excerpt.place) for part in parts] == [False, True]
