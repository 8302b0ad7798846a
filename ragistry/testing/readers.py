"""Conformance tests of readers: subclass, set ``reader``, ``suffix`` and ``phrases``, and override ``data``.

class TestPlan(ReaderConformance):
    reader = staticmethod(read)
    suffix = ".plan"
    phrases = {"the staircase": Place(page=2), "a kitchen": Place(page=1)}

    @pytest.fixture
    def data(self):
        return Path("house.plan").read_bytes()
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar

import pytest

from ragistry.readers.blocks import Place, ReadDocument, answer_of, longest_text


class ReaderConformance:
    """The contract of a reader, ``read(data: bytes, suffix: str) -> ReadDocument`` (`ragistry.readers.blocks`).

    ``phrases``: each phrase that is planted in ``data``, with its place. Each stands there once.
    """

    reader: ClassVar[Callable[[bytes, str], ReadDocument]]
    suffix: ClassVar[str]
    phrases: ClassVar[Mapping[str, Place]]

    @pytest.fixture
    def data(self) -> bytes:
        raise NotImplementedError("override the fixture `data`")

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the answer of the worker for a document."""
        return answer_of(type(self).reader(data, self.suffix))

    def test_no_phrase_is_lost(self, data: bytes) -> None:
        text = self.read(data)["text"]
        assert {phrase: text.count(phrase) for phrase in self.phrases} == dict.fromkeys(self.phrases, 1)

    def test_each_phrase_is_at_its_place(self, data: bytes) -> None:
        answer = self.read(data)
        starts = [start for start, _ in answer["places"]]
        assert starts == sorted(starts), "places follow each other"
        for phrase, place in self.phrases.items():
            offset = answer["text"].find(phrase)
            before = [values for start, values in answer["places"] if start <= offset]
            wanted = {name: value for name, value in asdict(place).items() if value}
            assert wanted.items() <= (before[-1] if before else {}).items(), f"the place of {phrase!r}"

    def test_the_answer_is_bounded_and_can_be_sent(self, data: bytes) -> None:
        answer = self.read(data)
        assert len(answer["text"]) <= longest_text(len(data)), "the worker cuts a longer text"
        assert json.loads(json.dumps(answer["places"])) == [[start, place] for start, place in answer["places"]]
        assert all(isinstance(value, str) for value in answer["info"].values())

    def test_the_same_bytes_give_the_same_answer(self, data: bytes) -> None:
        assert self.read(data) == self.read(data)

    @pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
    def test_a_damaged_document_ends_in_text_or_an_error(self, data: bytes, part: float) -> None:
        end = int(part * len(data))
        for damaged in (data[:end], data[:end] + bytes(len(data) - end), bytes(reversed(data))):
            try:
                answer = self.read(damaged)
            except Exception:  # noqa: BLE001, the worker reports any error as one of the file
                continue
            assert len(answer["text"]) <= longest_text(len(damaged))
