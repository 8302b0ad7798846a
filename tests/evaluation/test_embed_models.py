"""Compare embedders: one index for each, their cost, vectors that are reused, and a limit of time."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ragistry import Workspace, open_workspace
from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, compare, markdown, page, read_library
from ragistry.evaluation.report.text import print_report
from ragistry.evaluation.systems.variants import Chunking
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.testing.hashed import HashingEmbedder
from tests.conftest import Corpus
from tests.evaluation.small_sets import TOPICS, topics
from tests.messages import refused
from tests.models import folders

TECHNIQUES = """
techniques:
  naive: {use: naive}
  bm25: {use: bm25}
  hybrid: {use: hybrid, bases: [naive, bm25]}
  stated: {use: naive, embedding_model: all-MiniLM-L6-v2}
"""
MODELS = ["minilm", "folder:./mine"]


class Small(HashingEmbedder):
    """An embedder without a model, of a dimension of its own."""

    def __init__(self) -> None:
        super().__init__(24)


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    with open_workspace(tmp_path) as found:
        yield found


def small(name: str = "Small") -> str:
    return f"tests.evaluation.test_embed_models:{name}"


def shown(comparison: Comparison) -> str:
    out = Console(file=StringIO(), width=80, markup=False, highlight=False)
    print_report(comparison, out)
    return out.file.getvalue()  # type: ignore[attr-defined]


def test_each_model_has_one_index_for_all_techniques(opened: Workspace, tmp_path: Path) -> None:
    folders.minilm(tmp_path / "mine", **{"1_Pooling/config.json": {"pooling_mode_cls_token": True}})
    found = compare(["naive", "bm25", "hybrid"], topics(), ["nDCG@10"], workspace=opened, embed_models=MODELS)
    varied = {f"{technique}[{model}]" for technique in ("naive", "hybrid") for model in MODELS}
    assert set(found.techniques) == {"bm25", *varied}
    assert found.baseline == "naive[minilm]"
    assert set(found.indexes) == {"document, minilm", "document, folder:./mine"}
    assert found.runs["naive[minilm]"] != found.runs["naive[folder:./mine]"], "another pooling ranks otherwise"
    for cost in found.indexes.values():
        assert (cost.chunks, cost.disk_bytes > 0) == (len(TOPICS), True)
        assert cost.seconds > 0 < cost.cpu_seconds
    record = found.to_json()["provenance"]
    assert list(record["embedders"]) == MODELS
    assert record["techniques"]["naive[folder:./mine]"]["embed_model"]["provider"] == "folder"
    assert Comparison.from_json(json.loads(json.dumps(found.to_json()))).indexes == found.indexes
    terminal = shown(found)
    assert max(map(len, terminal.splitlines())) <= 80
    for text in (terminal, markdown(found).replace("\\", ""), page(found)):
        table = text[text.index("Embedding models") :]
        assert all(words in table for words in (*MODELS, "index s", "CPU s", "search ms", "CPU ms", "MB"))
    [pair] = found.embedder_pairs
    assert pair in found.main_pairs, "the interval is that of the table"
    assert (pair.a, pair.b) == ("naive[folder:./mine]", "naive[minilm]")
    assert found.first_lines == [str(found.verdict), f"{pair.verdict()}."]
    assert found.first_lines[1] in " ".join(terminal.split())
    assert found.first_lines[1] in page(found)
    by_words = {"workspace": opened, "embed_models": MODELS, "baseline": "bm25"}
    [apart] = compare(["bm25", "hybrid"], topics(), ["nDCG@10"], **by_words).embedder_pairs
    assert (apart.a, apart.b) == ("hybrid[folder:./mine]", "hybrid[minilm]")


def test_a_technique_without_vectors_is_the_best_with_no_model(opened: Workspace) -> None:
    fitted = Chunking(200, 0, fit=True)
    found = compare(["bm25", "naive"], topics(), workspace=opened, embed_models=["minilm"], chunk_size=fitted)
    entries = found.to_json()["provenance"]["techniques"]
    assert {name: "embed_model" in entry for name, entry in entries.items()} == {"bm25": False, "naive[minilm]": True}


def test_vectors_of_the_library_and_of_earlier_comparisons_are_reused(
    opened: Workspace, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.library.create_collection("notes", "Notes")
    opened.library.ingest_folder(
        corpus({f"{name}.md": f"# {name}\n\n{text}" for name, text in TOPICS.items()}), "notes"
    )
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"text": "when does dough rise", "sources": ["bread.md"]}\n', encoding="utf-8")
    asked: list[str] = []

    embed = MiniLMEmbedder.embed

    def counted(self: MiniLMEmbedder, texts: list[str], *, role: Any = "document") -> Any:
        asked.extend(texts if role == "document" else [])
        return embed(self, texts, role=role)

    monkeypatch.setattr(MiniLMEmbedder, "embed", counted)
    for _ in range(2):
        found = compare(["hybrid"], read_library(opened, queries), workspace=opened, embed_models=["minilm", small()])
        assert asked == []
    taken = {one.embed_model: one.from_library for one in found.indexes.values()}
    assert taken == {"minilm": len(TOPICS), small(): 0}
    assert {one.as_in_library for one in found.indexes.values()} == {len(TOPICS)}, "cut as in the library"
    assert opened.store.embedder() == opened.embedder.fingerprint, "the library is left alone"


def test_answers_of_each_model_are_kept(opened: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both: dict[str, Any] = {"workspace": opened, "embed_models": ["minilm", small()]}
    live = compare(["naive"], topics(), answers=tmp_path / "answers.db", **both)
    monkeypatch.setattr(MiniLMEmbedder, "embed", lambda *_, **__: pytest.fail("embedded"))
    monkeypatch.setattr(Small, "embed", lambda *_, **__: pytest.fail("embedded"))
    assert compare(["naive"], topics(), answers=tmp_path / "answers.db", **both).runs == live.runs


@pytest.mark.parametrize(
    ("techniques", "options", "words"),
    [
        (["naive"], {"embed_models": ["minilm", "minilm"]}, ["minilm"]),
        (["naive"], {"embed_models": "minilm"}, ["minilm"]),
        (["naive"], {"embed_models": [""]}, ["''"]),
        (["naive"], {"embed_models": ["minilm", "folder:nowhere"]}, ["folder:nowhere"]),
        (["naive"], {"embed_models": ["minilm", "./bge"]}, ["folder:./bge"]),
        (["naive"], {"embed_models": ["openai:large"]}, ["openai:large"]),
        (["bm25"], {"embed_models": ["minilm"]}, ["embed_models"]),
        (["stated"], {"embed_models": ["minilm"]}, ["stated", "all-MiniLM-L6-v2"]),
        (["naive"], {"embed_models": ["minilm"], "chunk_size": "library"}, ["library"]),
        (["naive"], {"embed_models": ["minilm"], "baseline": "nave"}, ["nave"]),
    ],
)
def test_models_that_cannot_be_compared_are_refused_before_anything_is_built(
    opened: Workspace, tmp_path: Path, techniques: list[str], options: dict[str, Any], words: list[str]
) -> None:
    with refused(EvaluationError, *words):
        compare(techniques, topics(), workspace=opened, cache=tmp_path / "cache", **options)
    assert not (tmp_path / "cache").exists()
