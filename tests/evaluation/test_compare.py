"""A comparison from end to end: real models, real stores, and techniques that misbehave."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ragistry.evaluation
from ragistry import Workspace, open_workspace
from ragistry.errors import EvaluationError, InvalidConfigError, MissingRecordError, UnknownTechniqueError
from ragistry.evaluation import Comparison, Dataset, Text, compare, read_library
from ragistry.evaluation.asking import WARM_UP
from ragistry.evaluation.configured import resolved
from ragistry.evaluation.running import BATCH
from ragistry.evaluation.sheets import conclusion, cost, differences, is_number
from ragistry.evaluation.statistics import detectable_difference
from ragistry.protocols import Generator
from ragistry.stores.local import LocalStore
from ragistry.stores.registry import open_local
from ragistry.trace import stage
from ragistry.types import Document, StageScore
from tests.evaluation.small_sets import Answers, Failing, Stopped, first, numbered, topics


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(tmp_path_factory.mktemp("workspace")) as opened:
        yield opened


@pytest.fixture(scope="module")
def compared(workspace: Workspace) -> Comparison:
    return compare(["naive", "bm25", "hybrid"], topics(), ["nDCG@10", "R@5"], "bm25", workspace=workspace)


def test_the_result_has_the_promised_form(compared: Comparison) -> None:
    found = json.loads(json.dumps(compared.to_json()))
    assert list(found["techniques"]) == ["naive", "bm25", "hybrid"]
    naive = found["techniques"]["naive"]
    assert set(naive["measures"]) == {"nDCG@10", "R@5"}
    estimate = naive["measures"]["nDCG@10"]
    assert estimate["low"] <= estimate["mean"] <= estimate["high"]
    assert 0 < naive["latency_ms"]["p50"] <= naive["latency_ms"]["p95"]
    assert naive["calls"] == 10
    assert naive["tokens"] > 10
    assert found["techniques"]["bm25"]["calls"] == 0
    wanted = {"a", "b", "measure", "difference", "p", "p_holm", "wins", "ties", "losses", "significant"}
    assert all(wanted <= set(pair) for pair in found["pairs"])
    assert [(pair["a"], pair["b"]) for pair in found["pairs"][:2]] == [("naive", "bm25"), ("hybrid", "bm25")]
    assert all(pair["wins"] + pair["ties"] + pair["losses"] == 10 for pair in found["pairs"])


def test_values_of_each_query_are_kept_and_their_mean_is_reported(compared: Comparison) -> None:
    for result in compared.techniques.values():
        for measure, values in result.per_query.items():
            assert len(values) == 10
            assert result.measures[measure].mean == pytest.approx(sum(values.values()) / 10)


def test_vectors_find_what_shares_no_word_with_the_query(compared: Comparison) -> None:
    bees = {name: result.per_query["nDCG@10"]["q-bees"] for name, result in compared.techniques.items()}
    assert bees["naive"] == 1
    assert bees["bm25"] < 1


def test_provenance_says_what_was_frozen(compared: Comparison) -> None:
    record = compared.provenance
    assert record["dataset"]["content_hash"] == topics("other name").content_hash()
    assert record["embedder"]["model"] == "all-MiniLM-L6-v2"
    assert set(record["techniques"]["hybrid"]["bases"]) == {"naive", "bm25"}
    assert record["techniques"]["hybrid"]["config"]["k"] == 60
    assert record["seed"] == 0
    assert {"ragistry", "python", "numpy", "tantivy"} <= set(record["versions"])
    assert "bm25" in record["statistics"]["family"]


def test_the_stages_of_a_query_add_up_to_its_time(compared: Comparison) -> None:
    hybrid = compared.techniques["hybrid"]
    assert set(hybrid.stages) >= {"naive > embed", "naive > search", "bm25 > search", "fuse"}
    assert sum(hybrid.stages.values()) == pytest.approx(hybrid.latency_ms.mean, rel=0.2)


def test_the_vector_of_a_query_is_charged_to_each_that_asks_for_it(compared: Comparison) -> None:
    naive, hybrid = compared.techniques["naive"], compared.techniques["hybrid"]
    assert hybrid.tokens == naive.tokens
    assert hybrid.stages["naive > embed"] == pytest.approx(naive.stages["embed"], rel=0.3)


def test_the_workspaces_own_store_is_left_alone(workspace: Workspace, compared: Comparison) -> None:
    assert compared.indexes["document"].chunks == 10
    assert workspace.store.count() == 0


def test_the_same_inputs_give_the_same_bytes(workspace: Workspace, tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        folder = tmp_path / name
        result = compare(["naive", "hybrid"], topics(), workspace=workspace, cache=folder / "cache", runs=folder)
        digests.append(result.provenance["rankings"])
    assert digests[0] == digests[1]
    for run in ("naive.run", "hybrid.run"):
        assert (tmp_path / "one" / run).read_bytes() == (tmp_path / "two" / run).read_bytes()
        assert len((tmp_path / "one" / run).read_text().splitlines()) >= 10


def test_each_text_is_embedded_once_over_a_grid_and_over_comparisons(workspace: Workspace, tmp_path: Path) -> None:
    grid = {"hybrid.k": [1, 60], "hybrid.fusion": ["rrf", "min_max"]}
    for _ in range(2):
        result = compare(["naive", "hybrid"], topics(), workspace=workspace, grid=grid, cache=tmp_path)
    assert list(result.techniques) == [
        "naive",
        "hybrid[k=1,fusion=rrf]",
        "hybrid[k=1,fusion=min_max]",
        "hybrid[k=60,fusion=rrf]",
        "hybrid[k=60,fusion=min_max]",
    ]
    with sqlite3.connect(tmp_path / "vectors.db") as connection:
        assert connection.execute("SELECT role, count(*) FROM vectors GROUP BY role ORDER BY role").fetchall() == [
            ("document", 10),
            ("query", 10),
        ]
    connection.close()
    assert len(list(tmp_path.glob("topics-*"))) == 1


def test_a_grid_of_chunk_sizes_makes_an_index_for_each(workspace: Workspace, tmp_path: Path) -> None:
    result = compare(["bm25"], topics(), workspace=workspace, grid={"chunk_size": ["document", 40]}, cache=tmp_path)
    assert list(result.techniques) == ["bm25[chunk_size=document]", "bm25[chunk_size=40/6]"]
    assert result.indexes["40/6"].chunks > 2 * result.indexes["document"].chunks == 20


def test_a_document_of_many_chunks_stands_where_its_best_chunk_stands(workspace: Workspace, tmp_path: Path) -> None:
    result = compare(["naive"], topics(), workspace=workspace, chunk_size=40, depth=100, cache=tmp_path)
    for ranking in result.runs["naive"].values():
        names = [name for name, _ in ranking]
        assert len(set(names)) == len(names) == 10  # as many chunks as it takes to see every document
        assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)


def test_a_grid_of_top_k_asks_for_no_more(workspace: Workspace, tmp_path: Path) -> None:
    result = compare(["naive"], topics(), workspace=workspace, grid={"naive.top_k": [1, 3]}, cache=tmp_path)
    assert {len(ranking) for ranking in result.runs["naive[top_k=1]"].values()} == {1}
    assert {len(ranking) for ranking in result.runs["naive[top_k=3]"].values()} == {3}


def test_a_technique_that_raises_is_reported_and_the_others_finish() -> None:
    failing = Failing(7, RuntimeError("the server\nwent away"))
    result = compare({"good": Answers(lambda _: 1), "bad": failing}, numbered(12), ["RR@10"])
    assert list(result.techniques) == ["good"]
    assert result.failures["bad"].query == "q7"
    assert result.failures["bad"].error == "RuntimeError: the server went away"
    assert result.winner is None
    assert not result.pairs


def test_a_score_that_is_no_number_is_a_failure() -> None:
    class Strange(Answers):
        def retrieve(self, query: str, **options: object) -> list[Document]:
            return [Document("", {}, float("nan"), "d1")]

    result = compare({"strange": Strange(lambda _: 1)}, numbered(3))
    assert result.failures["strange"].error.startswith("TechniqueError: technique 'strange' gave ")
    assert "'d1' the score nan; " in result.failures["strange"].error


def test_a_stage_score_that_is_no_number_is_not_in_the_report() -> None:
    class Strange(Answers):
        def retrieve(self, query: str, **options: object) -> list[Document]:
            scores = (StageScore("odd", "cosine", float("nan")), StageScore("even", "cosine", 0.5))
            return [Document("", {}, 1.0, "d1", scores=scores)]

    result = compare({"strange": Strange(lambda _: 1), "right": Answers(lambda _: 1)}, numbered(3))
    text = json.dumps(result.to_json(), allow_nan=False)
    assert '"even cosine": 0.5' in text


def test_results_that_name_no_document_of_the_corpus_are_a_failure() -> None:
    result = compare({"lost": Answers(lambda _: 0)}, numbered(3))
    assert "nothing that it returned is in the corpus (100 documents, such as 'x0')" in result.failures["lost"].error


def test_a_technique_that_needs_what_is_not_here_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    result = compare(
        {"bm25": None, "needy": lambda generator: generator}, topics(), workspace=workspace, cache=tmp_path
    )
    assert list(result.techniques) == ["bm25"]
    assert "generator" in result.failures["needy"].error


def test_a_winner_is_named_where_the_difference_is_significant() -> None:
    techniques = {"first": Answers(lambda _: 1), "second": Answers(lambda number: 2 if number % 2 else 1)}
    result = compare(techniques, numbered(40), ["RR@10"])
    assert result.winner == "first"
    [pair] = result.pairs
    assert (pair.wins, pair.ties, pair.losses) == (20, 20, 0)
    assert pair.difference == pytest.approx(0.25)
    assert pair.verdict().startswith("first is better than second in RR@10 by 0.250 (")
    swapped = compare(dict(reversed(techniques.items())), numbered(40), ["RR@10"])
    assert swapped.pairs[0].verdict() == pair.verdict()


def test_no_winner_is_named_where_none_is_shown() -> None:
    techniques = {"one": Answers(lambda number: 1 + number % 2), "other": Answers(lambda number: 2 - number % 2)}
    result = compare(techniques, numbered(40), ["RR@10"])
    assert result.winner is None
    [verdict] = result.verdicts
    assert verdict.startswith("no difference shown between one and other in RR@10, n = 40 (+0.000, p = 1.000)")
    assert "smallest difference that this many queries could show: 0.2" in verdict
    few = compare(techniques, numbered(3), ["RR@10"])
    assert few.verdicts[0].endswith("so few queries could show none; ask more")
    assert differences(few).rows[0][7] == "> 1"
    assert is_number(differences(few), 7)


def test_pairs_of_one_measure_are_one_family() -> None:
    ranks = {"a": 1, "b": 2, "c": 3, "d": 4}
    techniques = {name: Answers(lambda number, rank=rank: rank + number % 3) for name, rank in ranks.items()}
    result = compare(techniques, numbered(30), ["RR@10", "R@100"])
    assert len(result.main_pairs) == 6
    assert len(compare(techniques, numbered(30), ["RR@10"], "a").main_pairs) == 3
    smallest = min(result.main_pairs, key=lambda pair: pair.p)
    assert smallest.p_holm == pytest.approx(6 * smallest.p)
    a, b = (result.techniques[name].per_query["RR@10"] for name in (smallest.a, smallest.b))
    differences = [a[query] - b[query] for query in a]
    assert smallest.detectable == pytest.approx(detectable_difference(differences, alpha=0.05 / 6))


def test_the_order_of_the_files_decides_no_figure() -> None:
    straight = numbered(25)
    turned = replace(
        straight, queries=dict(reversed(straight.queries.items())), qrels=dict(reversed(straight.qrels.items()))
    )
    techniques = {"a": Answers(lambda number: 1 + number % 4), "b": Answers(lambda number: 1 + number % 3)}
    one, other = (compare(techniques, dataset, ["RR@10"]) for dataset in (straight, turned))
    assert one.provenance["dataset"]["content_hash"] == other.provenance["dataset"]["content_hash"]
    assert one.pairs == other.pairs
    assert [r.measures for r in one.techniques.values()] == [r.measures for r in other.techniques.values()]


def test_techniques_take_turns_in_an_order_that_changes() -> None:
    asked: list[tuple[str, str]] = []

    class Noted(Answers):
        def __init__(self, name: str) -> None:
            super().__init__(lambda _: 1)
            self.name = name

        def retrieve(self, query: str, **options: object) -> list[Document]:
            asked.append((query, self.name))
            return super().retrieve(query, **options)

    compare({name: Noted(name) for name in "abc"}, numbered(20))
    measured = asked[3 * WARM_UP :]
    assert [query for query, _ in measured] == [f"query {number}" for number in range(20) for _ in range(3)]
    turns = ["".join(name for _, name in measured[start : start + 3]) for start in range(0, 60, 3)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns)
    assert {turn[0] for turn in turns} == {"a", "b", "c"}, "each is first at times"


def test_progress_counts_what_is_done_of_all(workspace: Workspace, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    compare(
        ["naive", "bm25"], topics(), workspace=workspace, cache=tmp_path, progress=lambda *state: told.append(state)
    )
    assert list(dict.fromkeys(name for name, _, _ in told)) == ["embedding", "writing the index", "asking"]
    asking = [(done, total) for name, done, total in told if name == "asking"]
    assert asking == [(done, 20) for done in range(21)]


def test_what_a_run_folder_holds_is_not_asked_again(tmp_path: Path) -> None:
    earlier = compare({"a": Answers(first)}, numbered(30), runs=tmp_path)
    before = (tmp_path / "a.run").read_bytes()
    again, new = Answers(first), Answers(lambda _: 2)
    second = compare({"a": again, "b": new}, numbered(30), runs=tmp_path)
    assert again.asked == []
    assert len(new.asked) == 30 + WARM_UP
    assert second.techniques["a"] == earlier.techniques["a"]
    assert (tmp_path / "a.run").read_bytes() == before


def test_a_stop_in_the_middle_loses_no_more_than_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopped, "at", 2 * BATCH + 5)
    with pytest.raises(KeyboardInterrupt):
        compare({"a": Stopped()}, numbered(3 * BATCH), runs=tmp_path)
    monkeypatch.undo()
    kept = tmp_path / "a.answers.jsonl"
    kept.write_bytes(kept.read_bytes() + b'{"query": "q40", "ranking": [["d4')  # and a line that was cut
    resumed = Stopped()
    result = compare({"a": resumed}, numbered(3 * BATCH), ["RR@10"], runs=tmp_path)
    assert len(resumed.asked) == BATCH + WARM_UP
    assert result.techniques["a"].measures["RR@10"].mean == 1
    assert result.provenance["asking"]["resumed_answers"] == 2 * BATCH


def test_answers_of_another_comparison_are_refused(tmp_path: Path) -> None:
    compare({"a": Answers(first)}, numbered(5), runs=tmp_path)
    with pytest.raises(EvaluationError, match="holds answers of another test set"):
        compare({"a": Answers(first)}, numbered(6), runs=tmp_path)


def test_the_hit_with_the_querys_own_id_can_be_left_out() -> None:
    same = Dataset("same", [Text("7", "", "x"), Text("8", "", "y")], {"7": "query 7"}, {"7": {"8": 1}})

    class Itself:
        def retrieve(self, query: str, **_: object) -> list[Document]:
            return [Document("", {}, 2.0, "7"), Document("", {}, 1.0, "8")]

    assert compare({"t": Itself()}, same, ["RR@10"]).techniques["t"].measures["RR@10"].mean == 0.5
    assert compare({"t": Itself()}, same, ["RR@10"], drop_query=True).techniques["t"].measures["RR@10"].mean == 1


def test_the_hit_that_is_left_out_is_asked_for_on_top() -> None:
    corpus = [Text(name, "", name) for name in ("7", "8", "9", "10")]
    asked: list[int] = []

    class Ordered:
        def retrieve(self, query: str, *, top_k: int, where: object = None) -> list[Document]:
            asked.append(top_k)
            return [Document("", {}, -at, text.id) for at, text in enumerate(corpus)][:top_k]

    dataset = Dataset("same", corpus, {"7": "query 7"}, {"7": {"8": 1}})
    result = compare({"t": Ordered()}, dataset, ["RR@2"], depth=2, drop_query=True)
    assert [name for name, _ in result.runs["t"]["7"]] == ["8", "9"]
    assert asked == [3, 3]  # once to warm up


def test_objects_alone_need_no_workspace_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compare({"a": Answers(lambda _: 1)}, numbered(3))
    assert list(tmp_path.iterdir()) == []


def test_diagnosis_shows_the_queries_that_differ_most_with_both_rankings(compared: Comparison) -> None:
    pair = next(pair for pair in compared.diagnosis if pair.a == "naive")
    differences = [query.difference for query in pair.queries if query.difference > 0]
    assert differences == sorted(differences, reverse=True)
    first = pair.queries[0]
    assert first.a.best[0].document in first.why
    assert "dense cosine" in first.a.best[0].scores
    assert first.a.value > first.b.value


def test_relevant_documents_that_were_not_shown_are_grouped(workspace: Workspace, tmp_path: Path) -> None:
    class Routed:
        """Goes to a collection that holds nothing for the first half of the queries."""

        def __init__(self, config: dict, *, store: object) -> None:
            self.store = store

        def retrieve(self, query: str, *, top_k: int | None = None, where: object = None) -> list[Document]:
            with stage("route") as this:
                this.detail["chosen"] = ["elsewhere"] if "the" in query else ["topics"]
            return [] if "the" in query else list(self.store.scan())[:top_k]

    result = compare({"routed": Routed}, topics(), ["RR@1"], depth=5, workspace=workspace, cache=tmp_path)
    found = result.techniques["routed"].found
    assert found.routed_away == sum("the" in text for text in topics().queries.values()) > 0
    assert found.shown + found.low + found.never + found.routed_away == 10
    assert found.low > 0
    assert found.never > 0
    assert {one.query for one in found.examples["routed_away"]} <= set(topics().queries)


def test_a_library_is_searched_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"text": "how long is tea steeped", "sources": ["tea.md"]}\n')
    with open_workspace(tmp_path) as workspace:
        for name in ("drinks", "food"):
            workspace.library.create_collection(name, f"About {name}")
        workspace.library.ingest_text("Tea is steeped for two minutes.", "tea.md", "drinks")
        workspace.library.ingest_text("Bread is baked for an hour.", "bread.md", "food")
        dataset = read_library(workspace, tmp_path / "queries.jsonl")
        options = {"workspace": workspace, "chunk_size": "library"}
        result = compare(["bm25", "naive"], dataset, ["RR@10"], **options)
        again = compare(["bm25"], dataset, ["RR@10"], **options)
    assert result.runs["bm25"]["1"][0][0] == "drinks/tea.md"
    assert result.provenance["asking"]["search"] == "bm25, naive: as their own store searches"
    assert result.techniques["naive"].measures["RR@10"].mean == 1
    [size], [after] = ([index.disk_bytes for index in one.indexes.values()] for one in (result, again))
    assert 0 < after == size, "what comparisons keep is no part of the library"


def test_a_recorded_comparison_repeats_without_a_model(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "models.jsonl"
    compare(["naive"], topics(), workspace=workspace, record=record, runs=tmp_path / "live")
    monkeypatch.setattr("ragistry.embedders.minilm.MiniLMEmbedder.embed", lambda *_, **__: pytest.fail("asked"))
    again = compare(["naive"], topics(), workspace=workspace, replay=record, runs=tmp_path / "replayed")
    assert (tmp_path / "live" / "naive.run").read_bytes() == (tmp_path / "replayed" / "naive.run").read_bytes()
    assert again.provenance["asking"]["replayed"] == "models.jsonl"
    assert "Replayed from models.jsonl" in cost(again).note


def test_a_recording_does_not_begin_in_the_middle(workspace: Workspace, tmp_path: Path) -> None:
    options = {"dataset": topics(), "workspace": workspace, "runs": tmp_path / "runs", "cache": tmp_path / "cache"}
    compare(["bm25"], **options)
    with pytest.raises(EvaluationError, match="has answers that were not recorded; give a new folder for runs"):
        compare(["bm25"], **options, record=tmp_path / "models.jsonl")
    options["runs"] = tmp_path / "recorded"
    for _ in range(2):  # one that was stopped goes on
        compare(["bm25"], **options, record=tmp_path / "models.jsonl")


def test_a_replay_that_misses_a_record_names_it(workspace: Workspace, tmp_path: Path) -> None:
    record, dataset = tmp_path / "models.jsonl", topics()
    compare(["naive"], dataset, workspace=workspace, record=record)
    asked = replace(dataset, queries=dataset.queries | {"q-bees": "who keeps bees"})
    failed = compare(["naive", "bm25"], asked, workspace=workspace, replay=record)
    assert list(failed.techniques) == ["bm25"]
    assert "MissingRecordError" in failed.failures["naive"].error
    assert "to the query 'who keeps bees'" in failed.failures["naive"].error
    larger = replace(dataset, corpus=[*dataset.corpus, Text("new", "", "Something new.")])
    with pytest.raises(MissingRecordError, match="to the tokens 'Something new.'"):
        compare(["naive"], larger, workspace=workspace, replay=record)
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(EvaluationError, match="has no answer of an embedder"):
        compare(["naive"], dataset, workspace=workspace, replay=tmp_path / "empty.jsonl")


def test_the_name_of_a_test_set_decides_no_figure_even_where_ids_begin_with_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    texts = {"docs/README.md": "how to write a manual", "README.md": "an espresso machine", "other.md": "apple trees"}
    corpus = [Text(name, "", text) for name, text in texts.items()]
    for name in ("docs", "manuals"):
        dataset = Dataset(name, corpus, {"q": "espresso machine"}, {"q": {"README.md": 1}})
        result = compare(["bm25"], dataset, ["RR@10"], workspace=workspace, cache=tmp_path)
        assert result.techniques["bm25"].measures["RR@10"].mean == 1.0
        assert [document for document, _ in result.runs["bm25"]["q"]] == ["README.md"]


class Judged(Answers):
    """A technique that asks a generator, or would."""

    def __init__(self, config: dict, *, generator: Generator) -> None:
        super().__init__(lambda _: 1)


def test_answers_of_another_generator_are_refused(tmp_path: Path) -> None:
    def judged(model: str) -> Comparison:
        with open_workspace(tmp_path, generate_model=model) as opened:
            return compare({"judged": Judged}, numbered(3), workspace=opened, runs=tmp_path / "runs")

    assert judged("one").provenance["techniques"]["judged"]["models"]["generator"]["model"] == "one"
    assert judged("one").provenance["asking"]["resumed_answers"] == 3
    with pytest.raises(EvaluationError, match="holds answers of another .* code, model"):
        judged("two")


def test_the_models_of_a_technique_and_of_what_it_stands_on_are_frozen(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(
        "techniques:\n  naive: {use: naive}\n  judged: {use: 'tests.evaluation.test_compare:Judged'}\n"
        "  both: {use: hybrid, bases: [naive, judged]}\n"
    )
    with open_workspace(tmp_path) as opened:
        registry, model = opened.registry, SimpleNamespace(model="one")
        models = resolved(registry, "both", {"generator": model})["bases"]["judged"]["models"]
        assert models == {"generator": {"use": "types:SimpleNamespace", "model": "one"}}
        assert "models" not in resolved(registry, "naive", {"generator": model})


def test_a_corpus_of_any_size_is_searched_exactly(
    workspace: Workspace, compared: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []

    def opened(folder: Path, *, exact_below: int, **options: Any) -> LocalStore:
        limits.append(exact_below)
        return open_local(folder, exact_below=exact_below, **options)

    monkeypatch.setattr("ragistry.evaluation.indexing.open_local", opened)
    again = compare(["naive"], topics(), workspace=workspace, cache=tmp_path)
    assert again.runs["naive"] == compared.runs["naive"]
    assert again.failures == {}
    assert again.provenance["asking"]["search"] == "exact: every vector is compared"
    assert set(limits) == {sys.maxsize}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"baseline": "bm52"}, "the baseline 'bm52' is not compared; did you mean 'bm25'"),
        ({"measures": ["nDCG@200"], "depth": 50}, "rankings of 50 documents do not do .* look at 200"),
        ({"measures": ["nDCG@2000"]}, "at most 1,000"),
        ({"depth": "500"}, "rankings of '500' documents do not do"),
        ({"measures": ["NDCG@10"]}, "'NDCG@10' is no measure; did you mean 'nDCG@10'?"),
        ({"techniques": []}, "no technique is named"),
        ({"test": "wilcoxon"}, "unknown test 'wilcoxon'; there are randomisation and t"),
        ({"chunk_size": "big"}, "a chunk size is 'document', 500, or 500/75"),
        ({"record": "a", "replay": "b"}, "record and replay are both given"),
        ({"runs": __file__}, "is a file; give a folder for runs"),
        ({"cache": __file__}, "the cache .* is a file; give a folder"),
        ({"record": Path(__file__).parent}, "the record .* is a folder; give a file"),
    ],
)
def test_what_cannot_be_measured_is_refused(workspace: Workspace, arguments: dict, message: str) -> None:
    options = {"techniques": ["bm25"], "dataset": topics(), "workspace": workspace} | arguments
    with pytest.raises(EvaluationError, match=message):
        compare(**options)


def test_a_baseline_that_fails_leaves_nothing_to_test() -> None:
    techniques = {"bad": Failing(1, RuntimeError("no")), "good": Answers(lambda _: 1)}
    result = compare(techniques, numbered(5), baseline="bad")
    assert list(result.techniques) == ["good"]
    assert conclusion(result) == "The baseline bad failed, so that nothing can be tested against it."


def test_an_unknown_technique_and_a_bad_value_of_a_grid_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UnknownTechniqueError, match="no technique 'bm52'; did you mean 'bm25'?"):
        compare(["bm52"], topics(), workspace=workspace, cache=tmp_path)
    with pytest.raises(InvalidConfigError, match=r"hybrid\[k=many\].k: .*'many'"):
        compare(["hybrid"], topics(), workspace=workspace, grid={"hybrid.k": ["many"]}, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []  # nothing was embedded for it


@pytest.mark.parametrize("name", ragistry.evaluation.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(getattr(ragistry.evaluation, name))
    assert sorted(ragistry.evaluation.__all__) == ragistry.evaluation.__all__
