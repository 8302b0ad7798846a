"""A comparison from end to end: real models, real stores, and techniques that misbehave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ragistry.evaluation
from ragistry import Workspace, open_workspace
from ragistry.errors import EvaluationError, InvalidConfigError, UnknownTechniqueError
from ragistry.evaluation import Comparison, Dataset, Text, compare
from ragistry.evaluation.asking import WARM_UP
from ragistry.evaluation.outputs import check_outputs, write_runs
from ragistry.evaluation.systems.systems import N_RESULTS
from ragistry.testing.sparse import WordCounts
from ragistry.trace import model_call, stage
from ragistry.types import Document, StageScore
from tests.evaluation.small_sets import Answers, first, hashed_workspace, numbered, topics
from tests.messages import check_message, refused

TECHNIQUES = """
techniques:
  naive: {use: naive}
  bm25: {use: bm25}
  hybrid: {use: hybrid, bases: [naive, bm25]}
  steps: {use: pipeline, steps: {only: {technique: bm25}}}
  routed: {use: collection_routed, base: hybrid}
  broken: {use: 'tests.evaluation.test_compare:Broken'}
  above: {use: newest, base: broken}
"""


class Broken:
    """Cannot be made."""

    def __init__(self, config: dict[str, Any]) -> None:
        raise KeyError("size")

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return []


class Nothing:
    """Finds nothing."""

    def __init__(self, config: dict[str, Any], *, base: object = None) -> None:
        pass

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return []


class Based(Nothing):
    """Needs a base."""

    def __init__(self, config: dict[str, Any], *, base: object) -> None:
        pass


class Narrow:
    def retrieve(self, query: str, top_k: int | None = None) -> list[Document]:
        return []


class Fixed:
    """Returns the same at every query, or raises at one."""

    def __init__(self, *documents: Document, fails_at: str = "") -> None:
        self.documents = list(documents)
        self.fails_at = fails_at

    def retrieve(self, query: str, **options: object) -> list[Document]:
        if query == self.fails_at:
            raise RuntimeError("the server\nwent away")
        return self.documents


def configured(root: Path) -> Path:
    (root / "config").mkdir()
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES)
    return root


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Whose vectors do not matter."""
    with hashed_workspace(configured(tmp_path_factory.mktemp("hashed"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """With the real model."""
    with open_workspace(configured(tmp_path_factory.mktemp("real"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def compared(real: Workspace) -> Comparison:
    """Three techniques with the real model."""
    measures, cache = ["nDCG@10", "R@5"], real.root / "cache"
    return compare(["naive", "bm25", "hybrid"], topics(), measures, "bm25", workspace=real, cache=cache)


def test_result_has_measures_costs_pairs_and_provenance(compared):
    found = json.loads(json.dumps(compared.to_json()))
    assert list(found["techniques"]) == ["naive", "bm25", "hybrid"]
    naive, hybrid = found["techniques"]["naive"], found["techniques"]["hybrid"]
    assert set(naive["measures"]) == {"nDCG@10", "R@5"}
    assert 0 < naive["latency_ms"]["p50"] <= naive["latency_ms"]["p95"]
    assert naive["cpu_ms"]["p50"] > 0
    assert (naive["calls"], found["techniques"]["bm25"]["calls"]) == (10, 0)
    assert naive["returned_tokens"] > naive["tokens"] / 10 > 1
    assert [(pair["a"], pair["b"]) for pair in found["pairs"][:2]] == [("naive", "bm25"), ("hybrid", "bm25")]
    assert set(found["controls"]) == {"filename", "title_only", "random"}
    record = found["provenance"]
    assert record["dataset"]["content_hash"] == topics("other name").content_hash()
    assert record["embedder"]["model"] == "all-MiniLM-L6-v2"
    assert record["machine"]["runtime"].startswith("onnxruntime")
    assert set(record["techniques"]["hybrid"]["bases"]) == {"naive", "bm25"}
    assert record["techniques"]["hybrid"]["config"]["k"] == 60
    assert {"ragistry", "python", "numpy", "tantivy"} <= set(record["versions"])
    # Stages add up, and the vector of a query is charged to each technique.
    assert set(hybrid["stages"]) >= {"naive > embed", "naive > search", "bm25 > search", "fuse"}
    assert sum(hybrid["stages"].values()) == pytest.approx(hybrid["latency_ms"]["mean"], rel=0.3)
    assert hybrid["tokens"] == naive["tokens"]


def test_second_comparison_embeds_nothing(real, monkeypatch, compared, tmp_path):
    monkeypatch.setattr("ragistry.models.minilm.MiniLMEmbedder.embed", lambda *_, **__: pytest.fail("embedded"))
    grid = {"hybrid.fetch": [1, 60], "chunk_size": ["document"]}
    second = compare(["naive", "hybrid"], topics(), workspace=real, grid=grid, cache=real.root / "cache")
    assert list(second.techniques)[1:] == [
        "hybrid[fetch=1,chunk_size=document]",
        "hybrid[fetch=60,chunk_size=document]",
    ]
    words = compare(["bm25", "steps"], topics(), ["nDCG@10", "R@5"], workspace=real, cache=tmp_path)
    assert words.runs["bm25"] == compared.runs["bm25"]
    assert (words.provenance["embedder"], words.indexes["document"].embed_tokens) == (None, 0), "words alone need none"
    assert real.store.count() == 0, "the workspace's own store is left alone"


def test_document_ranks_where_its_best_chunk_ranks_and_top_k_of_a_grid_asks_for_no_more(workspace, tmp_path):
    grid = {"chunk_size": ["document", 40], "bm25.top_k": [1, 3]}
    result = compare(["naive", "bm25"], topics(), workspace=workspace, grid=grid, cache=tmp_path)
    assert result.indexes["40/6"].chunks > 2 * result.indexes["document"].chunks == 20
    for ranking in result.runs["naive[chunk_size=40/6]"].values():
        assert len({name for name, _ in ranking}) == len(ranking) == 10  # as many chunks as show every document
        assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)
    assert {len(ranking) for ranking in result.runs["bm25[top_k=1,chunk_size=document]"].values()} <= {0, 1}


def test_failures_are_reported_and_the_others_finish(workspace, tmp_path):
    class Dense:
        def __init__(self, config: dict, *, store: Any) -> None:
            self.store = store

        def retrieve(self, query: str, **_: object) -> list[Document]:
            return self.store.search([1.0])

    class Late(Broken):
        def __init__(self, config: dict[str, Any], *, store: object) -> None:
            raise RuntimeError("the store\nis odd")

    given = {"bm25": None, "broken": None, "above": None, "Broken": Broken, "late": Late, "none": list, "routed": None}
    given |= {"narrow": Narrow(), "simple": SimpleNamespace(retrieve=lambda query: []), "needy": lambda generator: 1}
    result = compare(given, topics(), workspace=workspace, cache=tmp_path)
    errors = {name: failure.error for name, failure in result.failures.items()}
    errors |= {
        name: one.error for name, one in compare({"dense": Dense}, topics(), workspace=workspace).failures.items()
    }
    assert list(result.techniques) == ["bm25"]
    assert errors["broken"] == errors["above"] == errors["Broken"] == "KeyError: 'size'"
    for name, value in {
        "late": "is odd", "needy": "generator", "narrow": "where", "simple": "top_k", "none": "retrieve",
        "dense": "`embedder`", "routed": "--queries FILE",
    }.items():  # fmt: skip
        check_message(errors[name], value)


def test_class_changes_no_other_contender(workspace, tmp_path):
    given = {"bm25": Nothing, "above": {"use": "newest", "base": "bm25"}, "based": Based, "words": "bm25"}
    result = compare(given, topics(), workspace=workspace, cache=tmp_path, grid={"based.base": ["bm25", "bm52"]})
    assert not any(result.runs["bm25"].values())
    assert result.runs["above"] == result.runs["words"], "a name inside an entry is that of techniques.yaml"
    assert not any(result.runs["based[base=bm25]"].values())
    check_message(result.failures["based[base=bm52]"].error, "'bm52'")
    check_message(compare({"based": Based}, topics(), workspace=workspace).failures["based"].error, "base")


def test_what_a_technique_returns_is_checked():
    scores = (StageScore("odd", "cosine", float("nan")), StageScore("even", "cosine", 0.5))
    given = {
        "good": Answers(first),
        "bad": Fixed(fails_at="query 7"),
        "nan": Fixed(Document("", {}, float("nan"), "d1")),
        "lost": Answers(lambda _: 0, 100),
        "scored": Fixed(Document("", {}, 1.0, "d1", scores=scores)),
        "empty": Fixed(),
    }
    result = compare(given, numbered(12), ["RR@10"])
    assert list(result.techniques) == ["good", "scored", "empty"]
    assert (result.failures["bad"].query, result.failures["bad"].error) == ("q7", "RuntimeError: the server went away")
    check_message(result.failures["nan"].error, "nan")
    check_message(result.failures["lost"].error, "100 documents", "'x0'")
    assert result.techniques["empty"].measures["RR@10"].mean == 0
    assert '"even cosine": 0.5' in json.dumps(result.to_json(), allow_nan=False)


class Noted(Answers):
    def __init__(self, name: str, asked: list[tuple[str, str]]) -> None:
        super().__init__(first)
        self.name, self.all = name, asked

    def retrieve(self, query: str, **options: object) -> list[Document]:
        self.all.append((query, self.name))
        return super().retrieve(query, **options)


def test_techniques_take_turns_and_are_timed_again():
    asked: list[tuple[str, str]] = []
    reported: list[tuple[str, int, int]] = []
    given = {name: Noted(name, asked) for name in "abc"}
    compare(given, numbered(20), timing_repeats=2, progress=lambda *state: reported.append(state))
    measured = asked[3 * WARM_UP :]
    assert [query for query, _ in measured] == [f"query {number}" for number in range(20) for _ in range(12)]
    names = "".join(name for _, name in measured)
    turns = [names[start : start + 12] for start in range(0, len(names), 12)]  # first twice each, for cost and ranking
    assert all(sorted(turn[:6:2]) == sorted(turn[1:6:2]) == sorted(turn[6:9]) == ["a", "b", "c"] for turn in turns)
    assert {turn[0] for turn in turns} == {"a", "b", "c"}, "each is first at times"
    assert reported == [("asking", done, 60) for done in range(61)]


def test_document_that_is_the_query_is_dropped():
    corpus = [Text(name, "", name) for name in ("7", "8", "9", "10")]
    asked: list[int] = []

    class Ordered:
        def retrieve(self, query: str, *, top_k: int, where: object = None) -> list[Document]:
            asked.append(top_k)
            return [Document("", {}, -at, text.id) for at, text in enumerate(corpus)][:top_k]

    kept, dropped = (
        compare({"t": Ordered()}, Dataset("same", corpus, {"7": text}, {"7": {"8": 1}}), ["RR@2"], depth=2)
        for text in ("query 7", "7")
    )
    assert [one.techniques["t"].measures["RR@2"].mean for one in (kept, dropped)] == [0.5, 1]
    assert [name for name, _ in dropped.runs["t"]["7"]] == ["8", "9"]
    assert set(asked) == {2, 3, N_RESULTS}, "one more is asked for, and a search has its own number"


class Costly:
    """Asks a model about every result."""

    def __init__(self, config, *, store=None):
        self.config = config

    def retrieve(self, query, *, top_k=None, where=None):
        documents = [Document("text", {}, -number, f"d{number}") for number in range(20)]
        for _ in (found := documents[: top_k or self.config.get("top_k", 3)]):
            model_call(tokens=10)
        return found


class WithDefault(Costly):
    def retrieve(self, query, top_k=7, where=None):
        return super().retrieve(query, top_k=min(top_k, 20))


class WithoutDefault(Costly):
    def retrieve(self, query, top_k, where):
        return super().retrieve(query, top_k=min(top_k, 20))


def test_cost_is_that_of_a_search_for_the_techniques_own_number_of_results(tmp_path):
    (tmp_path / "config").mkdir()
    entries = f"  plain: {{use: '{__name__}:Costly'}}\n  set: {{use: '{__name__}:Costly', top_k: 4}}\n"
    (tmp_path / "config" / "techniques.yaml").write_text(f"techniques:\n{entries}")
    objects = {"own": Costly({}), "default": WithDefault({}), "none": WithoutDefault({}), "class": Costly}
    with hashed_workspace(tmp_path, n_results=2) as opened:
        result = compare({"plain": None, "set": None, **objects}, numbered(10), workspace=opened, timing_repeats=0)
    assert {name: (one.calls, one.tokens) for name, one in result.techniques.items()} == {
        "plain": (20, 200), "set": (40, 400), "own": (30, 300), "default": (70, 700), "none": (50, 500),
        "class": (20, 200),
    }  # fmt: skip
    assert all(len(ranking) == 20 for run in result.runs.values() for ranking in run.values()), "rankings are deep"


def test_objects_alone_need_no_workspace_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compare({"a": Answers(first)}, numbered(3))
    assert list(tmp_path.iterdir()) == []


def test_relevant_documents_that_were_not_shown_are_grouped(workspace, tmp_path):
    class Routed:
        """Goes to a collection that holds nothing for the first half of the queries."""

        def __init__(self, config: dict, *, store: Any) -> None:
            self.store = store

        def retrieve(self, query: str, *, top_k: int | None = None, where: object = None) -> list[Document]:
            with stage("route") as this:
                this.detail["chosen"] = ["elsewhere"] if "the" in query else ["topics"]
            return [] if "the" in query else list(self.store.scan())[:top_k]

    result = compare({"routed": Routed}, topics(), ["RR@1"], depth=5, workspace=workspace, cache=tmp_path)
    found = result.techniques["routed"].found
    assert found.routed_away == sum("the" in text for text in topics().queries.values()) > 0
    assert found.shown + found.low + found.never + found.routed_away == 10
    assert found.low > 0 < found.never


def test_ids_that_begin_with_the_name_of_the_set_are_told_apart(workspace, tmp_path):
    texts = {"docs/README.md": "how to write a manual", "README.md": "an espresso machine", "other.md": "apple trees"}
    corpus = [Text(name, "", text) for name, text in texts.items()]
    dataset = Dataset("docs", corpus, {"q": "espresso machine"}, {"q": {"README.md": 1}})
    result = compare(["bm25"], dataset, ["RR@10"], workspace=workspace, cache=tmp_path)
    assert [document for document, _ in result.runs["bm25"]["q"]] == ["README.md"]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"baseline": "bm52"}, "'bm25'"), ({"measures": ["nDCG@200"], "depth": 50}, "200"),
        ({"measures": ["nDCG@2000"]}, "1,000"), ({"depth": "500"}, "'500'"), ({"measures": ["NDCG@10"]}, "'nDCG@10'"),
        ({"techniques": []}, ""), ({"techniques": {"": Answers(first)}}, "''"), ({"techniques": {"one": 7}}, "is 7"),
        ({"dataset": {"a": 1}}, "{'a': 1}"), ({"tune_on": 1.5}, "1.5"), ({"timing_repeats": -1}, "-1"),
        ({"chunk_size": "big"}, "'big'"), ({"chunk_size": "library"}, ""),
        ({"grid": {"chunk_size": ["document", "library"]}}, ""), ({"seed": -1}, "-1"),
        ({"cache": __file__}, "test_compare.py"), ({"answers": Path(__file__).parent}, "evaluation"),
        ({"techniques": [{"use": "bm25"}]}, "'mine'"), ({"techniques": [Answers(first)]}, "'mine'"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(workspace, arguments, value):
    options = {"techniques": ["bm25"], "dataset": topics(), "workspace": workspace} | arguments
    with refused(EvaluationError, value):
        compare(**options)


def test_runs_that_would_share_a_file_are_not_written(tmp_path):
    with refused(EvaluationError, "'5/7'", "'5_7'"):
        write_runs(tmp_path, {"5/7": {}, "5_7": {}})
    assert list(tmp_path.iterdir()) == []


def test_check_of_outputs_writes_nothing(tmp_path):
    check_outputs(files={"json": tmp_path / "a" / "b.json"}, folders={"runs": tmp_path / "c"}, seed=0)
    assert list(tmp_path.iterdir()) == []


def test_unknown_techniques_and_values_of_a_grid_are_refused(workspace, tmp_path):
    with refused(UnknownTechniqueError, "'bm25'"):
        compare(["bm52"], topics(), workspace=workspace, cache=tmp_path)
    with refused(InvalidConfigError, "'many'"):
        compare(["hybrid"], topics(), workspace=workspace, grid={"hybrid.k": ["many"]}, cache=tmp_path)
    for technique, grid in (
        ("hybrid", {"hybrid.k": [10, 60]}),
        ("hybrid", {"hybrid.k": [10, 60], "hybrid.fusion": ["min_max", "dbsf"]}),
        ("routed", {"routed.on_error": ["all", "abstain"]}),
        ("routed", {"routed.margin": [0.1, 0.2], "routed.router": ["all"]}),
    ):
        parameter = next(iter(grid))
        with refused(EvaluationError, parameter, "is read only with"):
            compare([technique], topics(), workspace=workspace, grid=grid, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []  # nothing was embedded for it
    read = {"hybrid.k": [10, 60], "hybrid.fusion": ["min_max", "rrf"]}
    assert len(compare(["hybrid"], topics(), workspace=workspace, grid=read, cache=tmp_path).techniques) == 4


def test_every_public_name_is_there():
    assert sorted(ragistry.evaluation.__all__) == ragistry.evaluation.__all__
    assert all(callable(getattr(ragistry.evaluation, name)) for name in ragistry.evaluation.__all__)


@pytest.mark.parametrize(
    ("deep", "said"),
    [
        (lambda id: ["d11", id], 1.0),
        (lambda _: [], 0.0),
        (lambda id: [id, id, id], 1.0),
        (lambda _: ["elsewhere"], "elsewhere"),
        (lambda _: None, "None"),
    ],
    ids=["another order", "none", "the same one", "another", "no list"],
)
def test_contender_whose_first_results_depend_on_their_number_is_measured_at_each_depth(deep, said):
    class Unstable:
        def retrieve(self, query: str, *, top_k: int | None = None, where: object = None) -> list[Document]:
            id = f"d{query.split()[-1]}"
            ids = [id, "d11", "d12"] if (top_k or 10) <= 10 else deep(id)
            return ids if ids is None else [Document("", {"source_file": one}, -at, one) for at, one in enumerate(ids)]

    found = compare({"own": Unstable(), "other": Answers(first)}, numbered(10), ["RR@10", "R@20"], progress=False)
    if isinstance(said, str):
        check_message(found.failures["own"].error, said)
        return
    own = found.techniques["own"].measures
    assert (own["RR@10"].mean, own["R@20"].mean) == (1.0, said)
    assert [id for id, _ in found.runs["own"]["q0"]] == list(dict.fromkeys(deep("d0"))), "the run is the deepest search"


def test_identical_texts_are_one_document_of_which_the_first_counts():
    corpus = [Text("a", "", "tea is steeped"), Text("b", "", "tea is steeped"), Text("c", "", "bread is baked")]
    dataset = Dataset("copies", corpus, {"q": "tea"}, {"q": {"b": 1}})
    runs = {
        "twice": {"q": [("a", 3.0), ("b", 2.0), ("c", 1.0)]},
        "once": {"q": [("b", 3.0), ("c", 1.0)]},
        "last": {"q": [("c", 3.0), ("a", 2.0), ("b", 1.0)]},
    }
    found = compare(runs, dataset, ["RR@10", "R@2"], progress=False)
    assert {name: one.measures["RR@10"].mean for name, one in found.techniques.items()} == {
        "twice": 1.0, "once": 1.0, "last": 0.5,
    }  # fmt: skip
    assert found.runs["twice"] == found.runs["twice"] | {"q": [("a", 3.0), ("c", 1.0)]}


def test_phrases_and_exclusions_work_as_in_a_search(tmp_path):
    corpus = [
        Text("green", "", "green tea is steeped for two minutes"),
        Text("tea", "", "tea that is green is steeped, tea, tea"),
        Text("bread", "", "bread is baked with green tea and salt"),
    ]
    queries = {"phrase": '"tea that is green"', "without": 'green tea -"salt" -"minutes"'}
    dataset = Dataset("phrases", corpus, queries, {"phrase": {"tea": 1}, "without": {"tea": 1}})
    found = compare(["bm25"], dataset, ["R@3"], workspace=tmp_path, progress=False)
    assert {query: [id for id, _ in hits] for query, hits in found.runs["bm25"].items()} == {
        "phrase": ["tea"], "without": ["tea"],
    }  # fmt: skip


def test_an_encoder_of_models_yaml_is_compared_and_named(tmp_path):
    (tmp_path / "config").mkdir()
    techniques = "techniques:\n  sparse: {use: learned_sparse, encoder: words}\n"
    (tmp_path / "config" / "techniques.yaml").write_text(techniques, encoding="utf-8")
    known = []
    for encoder in (*["ragistry.testing.sparse:WordCounts"] * 2, "tests.evaluation.test_compare:Rare"):
        models = f"encoders:\n  words: {{use: '{encoder}'}}\n"
        (tmp_path / "config" / "models.yaml").write_text(models, encoding="utf-8")
        with open_workspace(tmp_path) as opened:
            found = compare(["sparse"], topics(), ["RR@10"], workspace=opened)
        assert not found.failures
        assert found.techniques["sparse"].measures["RR@10"].mean > 0.5
        known.append(found.provenance["techniques"]["sparse"]["encoder"])
    assert known[0] == known[1] != known[2]


class Rare(WordCounts):
    """Another encoder."""
