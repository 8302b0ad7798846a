"""Text to token ids of BERT's uncased vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragistry.models.weights import read_vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import BertWordPieceTokenizer, Encoding

# The tokenizer's own result takes some hundred bytes a token: never hold it for a whole library at once.
_TEXTS_AT_ONCE = 256


class Tokens(NamedTuple):
    """A text's token ids, ``(n,)``, cut to what the model takes in, and its length before the cut."""

    ids: NDArray[np.int64]
    length: int


def load_tokenizer() -> BertWordPieceTokenizer:
    """Lower case, accents off, split into word pieces, between ``[CLS]`` and ``[SEP]``; no cut and no padding."""
    # Imported on first use, so that an embedder can be made, and its fingerprint read, at no cost.
    from tokenizers import BertWordPieceTokenizer

    return BertWordPieceTokenizer({token: number for number, token in enumerate(read_vocabulary())}, lowercase=True)


def tokenize(tokenizer: BertWordPieceTokenizer, texts: list[str], limit: int) -> list[Tokens]:
    """The tokens of each text, at most ``limit`` of them, of which the last is always ``[SEP]``."""
    return [Tokens(_cut(encoding.ids, limit), len(encoding)) for encoding in _encodings(tokenizer, texts)]


def count_tokens(tokenizer: BertWordPieceTokenizer, texts: list[str]) -> list[int]:
    """How many tokens each text has, ``[CLS]`` and ``[SEP]`` included."""
    return [len(encoding) for encoding in _encodings(tokenizer, texts)]


def _encodings(tokenizer: BertWordPieceTokenizer, texts: list[str]) -> Iterator[Encoding]:
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        yield from tokenizer.encode_batch(texts[start : start + _TEXTS_AT_ONCE])


def _cut(ids: list[int], limit: int) -> NDArray[np.int64]:
    return np.array(ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]], dtype=np.int64)
