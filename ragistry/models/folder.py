"""Models from a folder, in this process: embedders, cross-encoders and sparse encoders. Nothing is downloaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ragistry import trace
from ragistry.errors import EmbeddingGenerationError, ModelError
from ragistry.models.folder_files import ModelFolder, layers_of, max_tokens, prompts, query_table, usable_settings
from ragistry.models.onnx import OnnxEmbedder, cut_ids, encoded, padded
from ragistry.models.runtimes import load_session
from ragistry.models.texts import check_texts
from ragistry.types import EmbedderFingerprint, Role, ScoreKind

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Encoding

TOKENS = ("token_embeddings", "last_hidden_state")
"""Outputs with a vector for each token, the first one that a graph has."""
POOLED = "sentence_embedding"
NAME_IT = "name it as output in models.yaml, or as embed_output in documents.yaml"


class Row(NamedTuple):
    """The token ids of a text, or of two, and the types of the tokens."""

    ids: NDArray[np.int64]
    types: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


class Graph:
    """An ONNX model with its tokenizer. Inputs are passed by the names that the graph has."""

    def __init__(self, folder: ModelFolder, *, pairs: bool = False) -> None:
        folder.say_size()
        self.name = str(folder.path)
        self.tokenizer = folder.tokenizer()
        self.limit = max_tokens(folder)
        if pairs:
            self.tokenizer.enable_truncation(self.limit)
        model, external = folder.graph()
        try:
            # one runtime, because the vectors of another are proved equal for known weights only
            self.session = cast(Any, load_session(model, external=external))
        except Exception as error:  # onnxruntime has no class for its errors
            message = str(error).strip().split("\n")[0][:200]
            raise ModelError(f"the model in {self.name!r} does not load: {message}; export it again") from error
        self.digest = folder.digest()
        self.inputs = {one.name: np.int32 if "int32" in one.type else np.int64 for one in self.session.get_inputs()}
        unknown = self.inputs.keys() - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        if unknown:
            raise ModelError(
                f"the model in {self.name!r} needs inputs that are not made of text: {', '.join(sorted(unknown))}; "
                "export it for the task feature-extraction"
            )
        self.outputs = {one.name: one for one in self.session.get_outputs()}

    def floating(self, rank: int) -> list[str]:
        """Return the outputs of floating numbers with as many axes."""
        floats = ("tensor(float)", "tensor(float16)", "tensor(double)")
        return [name for name, one in self.outputs.items() if one.type in floats and len(one.shape) == rank]

    def output(self, setting: str | None, names: Sequence[str], rank: int) -> str:
        """Return the output to use: of the setting, by name, or the only floating one of this rank."""
        if setting is not None and setting not in self.outputs:
            raise ModelError(f"the model in {self.name!r} has no output {setting!r}; it has {self._listed()}")
        found = [setting] if setting else [name for name in names if name in self.outputs] or self.floating(rank)
        if len(found) != 1 and not set(found) & set(names):
            raise ModelError(
                f"it is not clear which output of {self.name!r} has the values: {self._listed()}; {NAME_IT}"
            )
        return found[0]

    def row(self, encoding: Encoding) -> Row:
        """Cut a text to the limit; a special token at its end is kept."""
        ids = encoding.ids
        kept = cut_ids(ids, self.limit) if encoding.special_tokens_mask[-1:] == [1] else np.array(ids[: self.limit])
        kept = kept if len(kept) else np.zeros(1)  # a tokenizer without special tokens: an empty text has no token
        return Row(kept.astype(np.int64), np.array((encoding.type_ids or [0])[: len(kept)], dtype=np.int64))

    def run(self, rows: Sequence[Row], output: str) -> NDArray[np.float32]:
        """Compute an output for each row: ``(n, …)``. Raises `ModelError`."""
        ids = padded([row.ids for row in rows])
        mask = np.arange(ids.shape[1]) < np.array([len(row) for row in rows])[:, np.newaxis]
        values: dict[str, NDArray[Any]] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": padded([row.types for row in rows]),
            "position_ids": np.broadcast_to(np.arange(ids.shape[1]), ids.shape),
        }
        try:
            [result] = self.session.run(
                [output], {name: values[name].astype(kind) for name, kind in self.inputs.items()}
            )
        except Exception as error:  # onnxruntime has no class for its errors
            message = str(error).strip().split("\n")[0][:200]
            raise EmbeddingGenerationError(f"the model in {self.name!r} fails: {message}; export it again") from error
        if len(result) != len(rows):
            raise EmbeddingGenerationError(
                f"the model in {self.name!r} returned {len(result)} rows for {len(rows)} texts; name another output"
            )
        return np.asarray(result, dtype=np.float32)

    def _listed(self) -> str:
        return ", ".join(f"{name} {one.type} {one.shape}" for name, one in self.outputs.items())


class FolderEmbedder(OnnxEmbedder):
    """An embedder from a folder, loaded on first use. Meets `Embedder`.

    Pooling (mean, cls, last) and Dense layers follow ``modules.json``; prompts are those of
    ``config_sentence_transformers.json``, else those the model is known for by the name of its folder. Rows have unit
    length. A static model (model2vec) is a table of its tokens' vectors. The fingerprint has a digest of all files that
    decide vectors.

    Args:
        model: The folder, or the ONNX file in it; relative to ``folder``.
        folder: Folder of the workspace.
        output: Output of the graph with the vectors, if that is not clear.
        threads: See `OnnxEmbedder`.

    Raises:
        ModelError: Of the first use: the folder has no model that can be used.
    """

    def __init__(
        self, model: str, *, folder: Path | None = None, output: str | None = None, threads: int | None = None
    ) -> None:
        super().__init__(threads=threads)
        self.path = Path(folder or ".") / Path(model).expanduser()
        self._output = output
        self._loaded: _Model | None = None

    @cached_property
    def files(self) -> ModelFolder:
        """The folder. Raises `ModelError`."""
        return ModelFolder(self.path)

    @property
    def fingerprint(self) -> EmbedderFingerprint:  # type: ignore[override]
        """Computed from the files, which are loaded for it. Raises `ModelError`."""
        return self._model.fingerprint

    @property
    def token_key(self) -> str:
        """The key of the model in a file of token vectors. Raises `ModelError`."""
        return self.fingerprint.digest

    @property
    def output(self) -> str:
        """The output of the graph with the vectors; empty for a static model. Raises `ModelError`."""
        return getattr(self._model, "output", "")

    @property
    def _model(self) -> _Model:
        with self._lock:
            if self._loaded is None:
                with usable_settings(self.files):
                    is_static = self.files.onnx is None
                    self._loaded = _Static(self.files) if is_static else _Transformer(self.files, self._output)
                self._session = self._loaded.session
                self.files.forget()
            return self._loaded

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
        """As `Embedder.embed`, with the prompt of the role. Text beyond the limit is cut and reported."""
        texts, model = check_texts(texts), self._model
        if not texts:
            return np.empty((0, model.fingerprint.dimension), dtype=np.float32)
        return np.stack(self._compute(self._rows(model, texts, role), model.vectors))

    def token_vectors(self, texts: Sequence[str], *, role: Role = "document") -> list[NDArray[np.float32]]:
        """Compute ``(n, d)`` for each text: unit vectors of its n tokens without the first and last, special ones."""
        texts, model = check_texts(texts), self._model
        rows = self._rows(model, texts, role) if texts else []
        return self._compute(rows, lambda some: map(_unit, model.tokens(some))) if rows else []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`, with the prompt of documents."""
        model = self._model
        return [len(one) for one in model.encode(check_texts(texts), "document")]

    def _rows(self, model: _Model, texts: Sequence[str], role: Role) -> list[Row]:
        encodings = model.encode(texts, role)
        if model.limit:
            self._report_cuts([len(one) for one in encodings], role)
        rows = [model.row(one) for one in encodings]
        trace.model_call(tokens=sum(map(len, rows)))
        return rows


class _Model(ABC):
    """A loaded embedder. ``session``: of its graph; None for a static model."""

    limit = 0
    session: Any = None

    def __init__(self, files: ModelFolder, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.prefixes = prompts(files)
        self.lower = files.json("sentence_bert_config.json").get("do_lower_case") is True
        self.fingerprint = EmbedderFingerprint("folder", files.path.resolve().name, "", 0)

    def encode(self, texts: Sequence[str], role: Role) -> list[Encoding]:
        prefixed = [self.prefixes[role] + text for text in texts]
        prefixed = [text.lower() for text in prefixed] if self.lower else prefixed
        return list(encoded(self.tokenizer, prefixed))

    def finish(self, digest: str) -> None:
        """Complete the fingerprint with the dimension of a first vector."""
        text = self.encode(["dimension"], "document")[0]
        size = self.vectors([self.row(text)]).shape[1]
        self.fingerprint = EmbedderFingerprint(
            "folder",
            self.fingerprint.model,
            digest,
            size,
            self.prefixes["query"],
            self.prefixes["document"],
            self.limit,
        )

    @abstractmethod
    def row(self, encoding: Encoding) -> Row:
        """Return the numbers that the model computes with."""

    @abstractmethod
    def vectors(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """Compute a unit vector of each row, ``(len(rows), d)``."""

    @abstractmethod
    def tokens(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        """Compute ``(n, d)`` for the n tokens of each row."""


class _Transformer(_Model):
    def __init__(self, files: ModelFolder, output: str | None) -> None:
        self.graph = Graph(files)
        super().__init__(files, self.graph.tokenizer)
        self.limit, self.session = self.graph.limit, self.graph.session
        has_tokens = any(name in self.graph.outputs for name in TOKENS)
        self.output = self.graph.output(output, TOKENS if has_tokens else (POOLED,), 3)
        self.pooled = len(self.graph.outputs[self.output].shape) == 2
        self.pooling, self.layers, self.token_layers = layers_of(files)
        self.finish(files.digest() + ("" if output is None else output.encode().hex()))

    def row(self, encoding: Encoding) -> Row:
        return self.graph.row(encoding)

    def vectors(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        if self.pooled:  # the graph has all modules
            return _unit(self.graph.run(rows, self.output))
        states = self.tokens(rows, special=True)
        if self.pooling == "mean":
            found = np.stack([one.mean(axis=0) for one in states])
        else:
            found = np.stack([one[0 if self.pooling == "cls" else -1] for one in states])
        for layer in self.layers:
            found = layer(found)
        return _unit(found)

    def tokens(self, rows: Sequence[Row], *, special: bool = False) -> list[NDArray[np.float32]]:
        states = self.graph.run(rows, self.output)
        if states.ndim != 3 or states.shape[1] != max(map(len, rows)):
            raise ModelError(
                f"the output {self.output!r} of {self.graph.name!r} has the shape {states.shape}, not a vector for "
                f"each token; {NAME_IT}"
            )
        for layer in self.token_layers:
            states = layer(states)
        cut = slice(None) if special else slice(1, -1)
        return [state[: len(row)][cut] for state, row in zip(states, rows, strict=True)]


class _Static(_Model):
    """A table of vectors: the mean of those of the tokens, times their weights (model2vec)."""

    def __init__(self, files: ModelFolder) -> None:
        super().__init__(files, files.tokenizer())
        tensors = files.tensors(str(files.static))
        table = tensors.get("embeddings", tensors.get("embedding.weight"))
        if table is None or table.ndim != 2:
            raise ModelError(f"{str(files.path / str(files.static))!r} has no table of embeddings; fetch it again")
        count = self.tokenizer.get_vocab_size()
        self.mapping = np.asarray(tensors.get("mapping", np.arange(count)), dtype=np.int64)
        self.weights = np.asarray(tensors.get("weights", np.ones(count)), dtype=np.float32)
        if min(len(self.mapping), len(self.weights)) < count or self.mapping.max() >= len(table):
            raise ModelError(f"the table in {str(files.path)!r} lacks tokens of the tokenizer; fetch both again")
        self.table = table.astype(np.float32)
        self.unknown = getattr(self.tokenizer.model, "unk_token", None)
        self.finish(files.digest())

    def encode(self, texts: Sequence[str], role: Role) -> list[Encoding]:
        return list(self.tokenizer.encode_batch([self.prefixes[role] + one for one in texts], add_special_tokens=False))

    def row(self, encoding: Encoding) -> Row:
        unknown = None if self.unknown is None else self.tokenizer.token_to_id(self.unknown)
        ids = np.array([one for one in encoding.ids if one != unknown] or [-1], dtype=np.int64)
        return Row(ids, np.zeros_like(ids))

    def vectors(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        return _unit(np.stack([one.mean(axis=0) for one in self.tokens(rows)]))

    def tokens(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        # a text without a known token is as near to one text as to another
        blank = np.ones((1, self.table.shape[1]), dtype=np.float32)
        return [
            blank if row.ids[0] < 0 else self.table[self.mapping[row.ids]] * self.weights[row.ids, np.newaxis]
            for row in rows
        ]


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to unit length. Raises `EmbeddingGenerationError` for NaN, infinity and zero."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise EmbeddingGenerationError("the model computed NaN, infinity or zero; export it again in float32")
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit


class _FolderModel(ABC):
    """A graph from a folder, loaded on first use."""

    def __init__(self, *, path: str, output: str | None = None, workspace_folder: Path | None = None) -> None:
        self.path = Path(workspace_folder or ".") / Path(path).expanduser()
        self._output = output
        self._runner = OnnxEmbedder()
        self._lock = Lock()
        self._graph: Graph | None = None

    def _loaded(self) -> Graph:
        with self._lock:
            if self._graph is None:
                files = ModelFolder(self.path)
                with usable_settings(files):
                    self._graph = self._load(files)
                files.forget()
            return self._graph

    @abstractmethod
    def _load(self, files: ModelFolder) -> Graph:
        """Read what the model needs, and return its graph."""


class FolderReranker(_FolderModel):
    """A cross-encoder from a folder, loaded on first use. Meets `Reranker`.

    One label is a logit, to which the activation of the folder's config.json applies (sigmoid by default, as in
    sentence-transformers); of two labels, the score is the probability of the second.

    Args:
        path: The folder, or the ONNX file in it; relative to the workspace.
        output: Output of the graph with the logits, if that is not clear.
        workspace_folder: Folder of the workspace.
    """

    score_kind: ScoreKind = "cross_encoder"

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `ragistry.protocols.Reranker`. A long text is cut to the model's limit, the longer of the two first."""
        texts = check_texts(texts)
        [query] = check_texts([query])
        if not texts:
            return []
        graph = self._loaded()
        rows = [
            Row(np.array(one.ids), np.array(one.type_ids))
            for one in encoded(graph.tokenizer, ((query, text) for text in texts))
        ]
        trace.model_call(tokens=sum(map(len, rows)))
        scores = self._runner._compute(rows, lambda some: self._scores(graph, some))
        if not np.isfinite(scores).all():
            raise ModelError(f"the model in {graph.name!r} computed NaN or infinity; export it again in float32")
        return list(map(float, scores))

    def _scores(self, graph: Graph, rows: Sequence[Row]) -> NDArray[np.float64]:
        logits = graph.run(rows, self._logits).astype(np.float64).reshape(len(rows), -1)
        if logits.shape[1] > 2:
            raise ModelError(f"the model in {graph.name!r} has {logits.shape[1]} labels; a reranker has one or two")
        raw = logits[:, -1] - (logits[:, 0] if logits.shape[1] == 2 else 0)
        is_sigmoid = self._activation == "Sigmoid" or logits.shape[1] == 2
        # in halves, so that no exponent overflows
        scores: NDArray[np.float64] = 0.5 * (1 + np.tanh(raw / 2)) if is_sigmoid else raw
        return scores

    def _load(self, files: ModelFolder) -> Graph:
        settings = files.json("config.json")
        files.check_task("ForSequenceClassification", "a reranker")
        graph = Graph(files, pairs=True)
        own = settings.get("sentence_transformers") or {}
        name = own.get("activation_fn") or settings.get("sbert_ce_default_activation_function") or "Sigmoid"
        self._activation = str(name).rpartition(".")[2] or str(name)
        self._logits = graph.output(self._output, ("logits",), 2)
        return graph


class FolderEncoder(_FolderModel):
    """A sparse encoder from a folder, loaded on first use. Meets `SparseEncoder`.

    The weight of a term is the maximum, over the tokens of the text, of log(1 + relu(logit)): Formal et al., "SPLADE
    v2", 2021. A query is looked up in a table of weights instead if the folder has one (``idf.json``, or the module
    ``query_0_SparseStaticEmbedding``): Geng et al., "Towards Competitive Search Relevance For Inference-Free Learned
    Sparse Retrievers", 2024.

    Args:
        path: See `FolderReranker`.
        output: See `FolderReranker`.
        workspace_folder: See `FolderReranker`.
    """

    @property
    def fingerprint(self) -> str:
        graph = self._loaded()
        return f"folder {self.path.resolve().name} {graph.digest} {self._logits}"

    def encode(self, texts: Sequence[str], *, role: Role) -> list[dict[str, float]]:
        """See `ragistry.protocols.SparseEncoder`. A long text is cut to the model's limit and reported."""
        texts, graph = check_texts(texts), self._loaded()
        if not texts:
            return []
        encodings = list(encoded(graph.tokenizer, texts))
        if role == "query" and self._table:
            return [{term: self._table[term] for term in one.tokens if term in self._table} for one in encodings]
        cuts = sum(len(one) > graph.limit for one in encodings)
        if cuts:
            trace.degraded(f"{cuts} of {len(texts)} texts are longer than {graph.limit} tokens and were cut")
        return self._runner._compute([graph.row(one) for one in encodings], lambda some: self._weights(graph, some))

    def _weights(self, graph: Graph, rows: Sequence[Row]) -> Iterator[dict[str, float]]:
        for row, logits in zip(rows, graph.run(rows, self._logits), strict=True):
            weights = np.log1p(np.maximum(logits[: len(row)].max(axis=0), 0))
            if not np.isfinite(weights).all():
                raise ModelError(f"the model in {graph.name!r} computed NaN or infinity; export it in float32")
            terms = np.flatnonzero(weights)
            yield {self._terms[term]: float(weights[term]) for term in terms if term < len(self._terms)}

    def _load(self, files: ModelFolder) -> Graph:
        files.check_task("ForMaskedLM", "a sparse encoder")
        self._table = query_table(files)
        graph = Graph(files)
        self._logits = graph.output(self._output, ("logits",), 3)
        vocabulary = graph.tokenizer.get_vocab()
        self._terms = sorted(vocabulary, key=vocabulary.__getitem__)
        return graph
