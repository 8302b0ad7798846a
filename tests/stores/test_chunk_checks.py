"""What may be stored, checked before any store."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import DuplicateChunkIDError, InvalidChunkError
from ragistry.stores.chunk_checks import check_chunks, check_source
from ragistry.stores.vectors import unit_vector, unit_vectors
from ragistry.testing.stores.chunks import BAD_CHUNKS, chunk, source
from ragistry.utils.metadata import MAX_KEYS, MAX_LIST, stored_metadata
from tests.messages import refused

scalars = st.text(max_size=5) | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
keys = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5)


@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_what_is_wrong_is_said_on_one_line(name):
    with refused(InvalidChunkError) as caught:
        check_chunks([chunk("good"), BAD_CHUNKS[name]])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_what_is_good_is_ready_to_write():
    checked = check_chunks(
        [chunk("one", [3, 4, 0], page=1, none=None), chunk("two", np.float64([0, 0, 2]))], ["x" * 512, "日\x00b"]
    )
    assert (checked.ids, checked.texts) == (["x" * 512, "日\x00b"], ["one", "two"])
    assert checked.metadatas == [{"page": 1}, {}]
    assert check_chunks([]).ids == []
    assert checked.vectors.dtype == np.float32
    assert checked.vectors == pytest.approx(np.array([[0.6, 0.8, 0], [0, 0, 1]]))


def test_equal_texts_without_a_place_have_one_id():
    with refused(DuplicateChunkIDError):
        check_chunks([chunk("text"), chunk("text")])


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(keys, scalars | st.booleans() | st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=5))
def test_metadata_of_the_known_kinds_are_kept_as_they_are(metadata):
    assert stored_metadata(metadata) == (metadata, [])


def test_the_limits_themselves_are_allowed():
    most = {f"key{i}": i for i in range(MAX_KEYS - 1)} | {"list": list(range(MAX_LIST))}
    assert stored_metadata(most) == (most, [])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8).filter(any))
def test_every_vector_with_a_direction_has_length_one(numbers):
    unit = unit_vector(numbers)
    assert np.linalg.norm(unit.astype(np.float64)) == pytest.approx(1.0, abs=1e-6)
    assert unit_vector(unit) == pytest.approx(unit, abs=1e-6)


def test_a_source_is_all_its_chunks_in_order():
    chunks = source("c", "f.md", ["one", "two", "three"])
    check_source("c", "f.md", chunks)
    for wrong in (chunks[1:], chunks[::-1], [chunks[0], chunks[0]]):
        with refused(InvalidChunkError):
            check_source("c", "f.md", wrong)
    with refused(InvalidChunkError):
        check_source("", "f.md", [])


@pytest.mark.parametrize("wrong", [None, float("nan"), float("inf"), 0.0])
def test_vectors_scaled_together_equal_those_scaled_alone(wrong: float | None) -> None:
    rows = list(np.random.default_rng(1).normal(size=(1_500, 8)).astype(np.float32))
    rows[3], rows[4] = rows[3] * np.float32(1e37), rows[4] * np.float32(1e-37)
    if wrong is not None:
        rows[1_400] = np.full(8, wrong, dtype=np.float32)
        with pytest.raises(ValueError, match="vector 1400 "):
            unit_vectors(rows, len(rows))
        return
    expected = np.stack([unit_vector(row) for row in rows])
    assert np.allclose(unit_vectors(rows, len(rows)), expected, rtol=0, atol=1e-7)
    assert np.array_equal(unit_vectors([row.tolist() for row in rows], len(rows)), expected)
