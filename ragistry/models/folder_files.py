"""Read a folder with a model, as sentence-transformers and optimum write it. No code of the folder is run.

Weights are read from ONNX and safetensors only: pickles (``.bin``, ``.pt``) can run code and are never opened. A file
that is a link to a place outside the folder is refused. Everything is read once, so that a folder that changes later
does not change a model in use.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragistry.errors import ModelError, ModelNotFoundError, RagistryError
from ragistry.models.known import prefixes_of
from ragistry.types import Role

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

TOKENIZER = "tokenizer.json"
PICKLES = ("pytorch_model.bin", "*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
SETTINGS = ("config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json")
EXPORT = "optimum-cli export onnx --model MODEL FOLDER"
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4"}
"""Kinds of numbers in safetensors, as NumPy reads them; BF16 is the upper half of a float32."""

MODES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_lasttoken": "last"}
PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
DEFAULT_TOKENS = 512
ACTIVATIONS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "Identity": lambda x: x,
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
}

_log = logging.getLogger(__name__)


class ModelFolder:
    """The files of a model. ``path``: a folder, or the ONNX file in it to use if there are several.

    Raises:
        ModelNotFoundError: There is no such folder or file.
        ModelError: The folder has no model or tokenizer that can be read.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path).expanduser()
        chosen = path if path.suffix == ".onnx" else None
        if chosen is not None:
            path = path.parent.parent if path.parent.name == "onnx" else path.parent
        if not path.is_dir():
            raise ModelNotFoundError(f"there is no folder {str(path)!r}; name one with {TOKENIZER} and model.onnx")
        self.path = path
        self._root = path.resolve()
        self._read: dict[str, bytes] = {}
        if not (path / TOKENIZER).exists():
            raise ModelError(f"{str(path)!r} has no {TOKENIZER}; fetch that file too, or run: {EXPORT}")
        self.onnx = chosen or self._only_onnx()
        self.static = self._static() if self.onnx is None else None
        if self.onnx is None and self.static is None:
            raise ModelError(f"{str(path)!r} has no ONNX file{self._pickle()}; run: {EXPORT}")

    def read(self, name: str) -> bytes | None:
        """Read a file of the folder once; None if it does not exist. Raises `ModelError`."""
        if name not in self._read:
            file = self.path / name
            if not file.exists():
                return None
            if not file.resolve().is_relative_to(self._root):
                raise ModelError(
                    f"{str(file)!r} is a link out of the folder; copy the folder with its files: cp -rL FOLDER COPY"
                )
            try:
                self._read[name] = file.read_bytes()
            except OSError as error:
                raise ModelNotFoundError(f"cannot read {str(file)!r}: {error.strerror}; make it readable") from error
        return self._read[name]

    def json(self, name: str) -> dict[str, Any]:
        """Read a JSON object; empty if the file does not exist. Raises `ModelError`."""
        value = self._json(name)
        if value is not None and not isinstance(value, dict):
            raise ModelError(f"{str(self.path / name)!r} is not a JSON object; fetch it again")
        return value or {}

    def check_task(self, ending: str, kind: str) -> None:
        """Raise `ModelError` if config.json says that the model was made for something else."""
        names = self.json("config.json").get("architectures") or []
        if names and not any(str(name).endswith(ending) for name in names):
            raise ModelError(
                f"{str(self.path)!r} has a {names[0]}, not {kind}, which is a model …{ending}; name another folder"
            )

    def modules(self) -> list[tuple[str, str]]:
        """Return kind and folder of each module in ``modules.json``: ``("Pooling", "1_Pooling")``."""
        try:
            return [(str(one["type"]).rpartition(".")[2], str(one["path"])) for one in self._json("modules.json") or []]
        except (TypeError, KeyError) as error:
            raise ModelError(f"{str(self.path / 'modules.json')!r} is not a list of modules; fetch it again") from error

    def tensors(self, name: str) -> dict[str, NDArray[Any]]:
        """Read the arrays of a file of safetensors. Raises `ModelError`."""
        content = self.read(name)
        if content is None:
            folder = (self.path / name).parent
            raise ModelError(f"{str(folder)!r} has no {Path(name).name}{self._pickle(folder)}; save it as safetensors")
        try:
            return dict(_safetensors(content))
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"{str(self.path / name)!r} is not a file of safetensors: {error}; fetch it again"
            ) from error

    def tokenizer(self) -> Tokenizer:
        """Load the tokenizer, without cut and padding. Raises `ModelError`."""
        from tokenizers import Tokenizer  # on first use

        content = self.read(TOKENIZER) or b""
        try:
            tokenizer: Tokenizer = Tokenizer.from_str(content.decode())
        except Exception as error:  # the library raises plain `Exception`
            message = f"{str(self.path / TOKENIZER)!r} is not a tokenizer: {error}; fetch it again"
            raise ModelError(message) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def graph(self) -> tuple[bytes, dict[str, bytes]]:
        """Read the ONNX file, and the files with its external weights by name. Raises `ModelError`."""
        assert self.onnx is not None
        name = self.onnx.relative_to(self.path).as_posix()
        model = self.read(name) or b""
        external = {}
        try:
            locations = sorted(set(_locations(model)))
        except (IndexError, ValueError) as error:
            raise ModelError(f"{str(self.onnx)!r} is not ONNX, or cut; fetch it again") from error
        for location in locations:
            if Path(location).name != location:
                raise ModelError(f"{str(self.onnx)!r} has weights in {location!r}, out of its folder; export it again")
            content = self.read((Path(name).parent / location).as_posix())
            if content is None:
                raise ModelError(f"{str(self.onnx)!r} has weights in {location!r}, which is missing; fetch it too")
            external[location] = content
        return model, external

    def digest(self) -> str:
        """Return the SHA-256 of everything that was read and decides vectors."""
        for name in (*SETTINGS, TOKENIZER):
            self.read(name)
        found = sha256()
        for name, content in sorted(self._read.items()):
            found.update(f"{name} {len(content)}\n".encode() + sha256(content).digest())
        return found.hexdigest()

    def forget(self) -> None:
        """Free what was read."""
        self._read.clear()

    def size(self) -> int:
        """Return the size of the weights in bytes, without reading them."""
        file = self.onnx or self.path / str(self.static)
        beside = [one for one in file.parent.glob(f"{file.name}*") if one.is_file()]
        return sum(one.stat().st_size for one in beside)

    def say_size(self) -> None:
        """Log the size of a model that is larger than the free memory."""
        free = free_memory()
        if free and self.size() > free:
            _log.warning(
                "%s has weights of %d MB, but only %d MB of memory are free", self.path, self.size() >> 20, free >> 20
            )

    def _json(self, name: str) -> Any:
        content = self.read(name)
        try:
            return None if content is None else json.loads(content)
        except ValueError as error:
            raise ModelError(f"{str(self.path / name)!r} is not JSON: {error}; fetch it again") from error

    def _only_onnx(self) -> Path | None:
        plain = [file for file in (self.path / "model.onnx", self.path / "onnx" / "model.onnx") if file.exists()]
        found = plain or sorted((self.path / "onnx").glob("model*.onnx"))
        if len(found) > 1:
            names = ", ".join(file.relative_to(self.path).as_posix() for file in found)
            raise ModelError(f"{str(self.path)!r} has several ONNX files: {names}; name one, as in {found[0]}")
        return found[0] if found else None

    def _static(self) -> str | None:
        """Return the file with the table of a static model."""
        places = [path for kind, path in self.modules() if kind == "StaticEmbedding"]
        places += [""] if self.json("config.json").get("model_type") == "model2vec" else []
        names = [f"{place}/model.safetensors".lstrip("/") for place in places]
        return next((name for name in names if (self.path / name).exists()), None)

    def _pickle(self, folder: Path | None = None) -> str:
        """Say that weights are there, but as a pickle."""
        folder = folder or self.path
        found = next((file.name for form in PICKLES for file in sorted(folder.glob(form))), None)
        return f" but {found}, a pickle, which could run code and is not opened" if found else ""


def free_memory() -> int:
    """Return the free memory in bytes; 0 if the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows, macOS
        return 0


def _safetensors(content: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    length = int.from_bytes(content[:8], "little")
    if length > len(content) - 8:
        raise ValueError("its header is cut")
    header: Mapping[str, Any] = json.loads(content[8 : 8 + length])
    for name, one in header.items():
        if name == "__metadata__":
            continue
        if one["dtype"] not in TYPES:
            raise ValueError(f"{name!r} has numbers of type {one['dtype']}")
        start, end = one["data_offsets"]
        array = np.frombuffer(content[8 + length + start : 8 + length + end], TYPES[one["dtype"]])
        if one["dtype"] == "BF16":
            array = (array.astype("<u4") << 16).view("<f4")
        elif array.dtype.kind == "f":
            array = array.astype(np.float32)
        yield name, array.reshape(one["shape"])


def _locations(model: bytes) -> Iterator[str]:
    """Yield the files that the initializers of an ONNX model name, from its protocol buffer (onnx.proto)."""
    for graph in _messages(memoryview(model), 7):
        for tensor in _messages(graph, 5):
            for entry in _messages(tensor, 13):
                key, value = (bytes(next(_messages(entry, number), b"")).decode() for number in (1, 2))
                if key == "location":
                    yield value


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    """Yield the content of a field of a protocol buffer, each time it occurs."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 2:
            length = varint()
            if key >> 3 == wanted:
                yield data[at : at + length]
            at += length
        elif key & 7 == 0:
            varint()
        else:
            at += 8 if key & 7 == 1 else 4


@contextmanager
def usable_settings(files: ModelFolder) -> Iterator[None]:
    """Raise `ModelError` for a setting that is JSON, but not of the kind that it has to be."""
    try:
        yield
    except RagistryError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ModelError(
            f"a setting in the JSON files of {str(files.path)!r} has a value of another kind: {said}; fetch them again"
        ) from error


# What the files say


class Dense(NamedTuple):
    """A layer of sentence-transformers: ``activation(x @ weight.T + bias)``."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    activation: str

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return ACTIVATIONS[self.activation](x @ self.weight.T + self.bias)


def max_tokens(folder: ModelFolder) -> int:
    """Return the limit of a model: ``max_seq_length``, else that of the tokenizer, else the number of positions."""
    limits = [
        folder.json("sentence_bert_config.json").get("max_seq_length"),
        folder.json("tokenizer_config.json").get("model_max_length"),
        folder.json("config.json").get("max_position_embeddings"),
    ]
    return next((int(limit) for limit in limits if isinstance(limit, int | float) and 2 < limit < 1e6), DEFAULT_TOKENS)


def prompts(files: ModelFolder) -> dict[Role, str]:
    """Return the text before queries and documents."""
    settings = files.json("config_sentence_transformers.json")
    written = settings.get("prompts") or {role: settings.get(f"{role}_prefix") or "" for role in PROMPTS}  # PyLate
    if wrong := [text for text in written.values() if not isinstance(text, str)]:
        raise TypeError(f"the prompt {wrong[0]!r} is not text")
    if not any(written.values()):
        return prefixes_of(files.path.resolve().name)
    default = written.get(settings.get("default_prompt_name") or "", "")
    return {
        role: next((written[name] for name in names if name in written), default) for role, names in PROMPTS.items()
    }


def layers_of(files: ModelFolder) -> tuple[str, list[Dense], list[Dense]]:
    """Return the pooling, the layers after it, and the layers before it, which change each token's vector."""
    pooling = ""
    after: list[Dense] = []
    before: list[Dense] = []
    modules = files.modules()
    for kind, place in modules or [("Pooling", "1_Pooling")]:
        if kind == "Pooling":
            pooling = _pooling(files, place)
        elif kind == "Dense":
            (after if pooling else before).append(_dense(files, place, (after or before)[-1:]))
        elif kind not in ("Transformer", "Normalize"):
            raise ModelError(f"the module {kind!r} in {str(files.path)!r} is not known; export a model without it")
    return pooling or "mean", after, before


def _pooling(files: ModelFolder, place: str) -> str:
    name = f"{place}/config.json"
    settings = files.json(name)
    chosen = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value is True]
    modes = [MODES.get(key, key) for key in chosen] or [settings.get("pooling_mode") or "mean"]
    modes = ["last" if one == "lasttoken" else one for one in modes]
    if len(modes) != 1 or modes[0] not in MODES.values() or settings.get("include_prompt") is False:
        raise ModelError(
            f"{str(files.path / name)!r} asks for a pooling that is not known: {', '.join(map(str, modes))}; known are "
            "mean, cls and last, with the prompt"
        )
    return str(modes[0])


def _dense(files: ModelFolder, place: str, before: Sequence[Dense]) -> Dense:
    settings, tensors = files.json(f"{place}/config.json"), files.tensors(f"{place}/model.safetensors")
    weight = tensors.get("linear.weight", np.zeros(0, dtype=np.float32))
    bias = tensors.get("linear.bias", np.zeros(len(weight), dtype=np.float32))
    shape = (settings.get("out_features", len(weight)), settings.get("in_features", weight.shape[-1]))
    if weight.shape != shape or bias.shape != shape[:1] or (before and len(before[-1].weight) != shape[1]):
        raise ModelError(
            f"the layer in {str(files.path / place)!r} has weights of the shapes {weight.shape}, {bias.shape} instead "
            f"of {shape}, {shape[:1]}; fetch it again"
        )
    activation = str(settings.get("activation_function", "torch.nn.Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise ModelError(
            f"the layer in {str(files.path / place)!r} has the activation {activation!r}; known are "
            f"{', '.join(ACTIVATIONS)}"
        )
    return Dense(weight, bias, activation)


def query_table(files: ModelFolder) -> dict[str, float]:
    """Return the weights of the terms of queries; empty if the model computes them."""
    table = {term: float(weight) for term, weight in files.json("idf.json").items()}
    place = "query_0_SparseStaticEmbedding/model.safetensors"
    if not table and (files.path / place).exists():
        [weights] = files.tensors(place).values()
        tokenizer = files.tokenizer()
        table = {str(tokenizer.id_to_token(number)): float(weight) for number, weight in enumerate(weights.ravel())}
    return table
