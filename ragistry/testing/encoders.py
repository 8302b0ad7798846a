"""Conformance tests of sparse encoders: subclass `EncoderConformance`, override its fixture, and run pytest.

class TestMine(EncoderConformance):
    @pytest.fixture
    def encoder(self):
        return MyEncoder()
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import isfinite

import pytest

from ragistry.errors import ModelError
from ragistry.protocols import SparseEncoder
from ragistry.testing.embedders import TEXTS
from ragistry.types import Role


class EncoderConformance:
    """The contract of `ragistry.protocols.SparseEncoder`."""

    @pytest.fixture
    def encoder(self) -> SparseEncoder:
        raise NotImplementedError("override the fixture `encoder`")

    def test_is_an_encoder_with_a_fingerprint_of_one_line(self, encoder: SparseEncoder) -> None:
        assert isinstance(encoder, SparseEncoder)
        assert encoder.fingerprint == encoder.fingerprint
        assert len(encoder.fingerprint.splitlines()) == 1

    @pytest.mark.parametrize("role", ["document", "query"])
    def test_each_text_has_terms_with_weights_of_0_or_more(self, encoder: SparseEncoder, role: Role) -> None:
        texts = list(TEXTS)
        found = encoder.encode(texts, role=role)
        assert (len(found), texts) == (len(TEXTS), list(TEXTS))
        assert all(
            isinstance(term, str) and isfinite(weight) and weight >= 0 for one in found for term, weight in one.items()
        )
        assert found[0] != found[1], "other texts have other terms"
        assert encoder.encode([], role=role) == []

    @pytest.mark.parametrize("role", ["document", "query"])
    def test_a_text_has_the_same_terms_alone_in_a_batch_and_in_threads(
        self, encoder: SparseEncoder, role: Role
    ) -> None:
        batch = encoder.encode(TEXTS, role=role)
        with ThreadPoolExecutor(4) as threads:
            alone = list(threads.map(lambda text: encoder.encode([text], role=role)[0], TEXTS))
        for one, other in zip(batch, alone, strict=True):
            shared = {term: (one.get(term, 0.0), other.get(term, 0.0)) for term in one.keys() | other}
            assert all(left == pytest.approx(right, abs=1e-3) for left, right in shared.values())

    @pytest.mark.parametrize("text", ["", " \n"])
    def test_a_blank_text_has_a_result_or_is_refused(self, encoder: SparseEncoder, text: str) -> None:
        try:
            assert len(encoder.encode(["before", text], role="document")) == 2
        except ModelError:
            pytest.skip("this encoder refuses blank text")
