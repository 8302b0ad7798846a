"""Token ids to one vector a text: a BERT encoder on onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Session(Protocol):
    """What is used of `onnxruntime.InferenceSession`, which comes without types."""

    def run(self, outputs: list[str], inputs: dict[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """The named outputs, in their order."""
        ...


def load_session(weights: bytes) -> Session:
    """A session that computes every run on the thread that asked for it."""
    # Imported on first use, so that an embedder can be made, and its fingerprint read, at no cost.
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    # Runs side by side, one thread each, are faster than runs in turn that deal out their work to threads; and a
    # session without threads of its own has none that spin between runs.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session: Session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    return session


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """The positions of ``lengths``, longest first, cut where a batch padded to its longest row would have more than
    ``budget`` tokens; a row that is longer than the budget stands alone.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    start = 0
    while start < len(order):
        size = max(1, budget // lengths[order[start]])
        yield order[start : start + size]
        start += size


def encode(session: Session, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    """The mean of each row's last hidden states, scaled to unit length: ``(n, d)``.

    Mean pooling as in Reimers and Gurevych (2019), "Sentence-BERT". ``rows``: one array of token ids a text.
    """
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, np.newaxis]).astype(np.int64)
    ids = np.zeros_like(mask)  # 0 is [PAD]
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    [hidden] = session.run(["last_hidden_state"], inputs)
    # A sum points where its mean does, and the length becomes one in either case.
    sums = np.stack([states[:length].sum(axis=0) for states, length in zip(hidden, lengths, strict=True)])
    vectors: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return vectors
