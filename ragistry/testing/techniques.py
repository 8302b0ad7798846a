"""Conformance tests of techniques: subclass, override ``technique`` over a few chunks, and run pytest.

class TestMine(TechniqueConformance):
    @pytest.fixture
    def technique(self, store, embedder):
        return Mine(Mine.Config(), store=store, embedder=embedder)  # or workspace.build({"use": Mine})

    query = "a question that finds something"
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import ValidationError

from ragistry.errors import QueryError
from ragistry.protocols import Technique
from ragistry.techniques.classes import config_model, wanted_resources
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.types import Document, is_outside, ranked
from ragistry.utils.where import matches, normalise


def same_answer(found: Sequence[Document], expected: Sequence[Document]) -> bool:
    """Whether the same passages are in the same order, with scores that are equal but for rounding."""
    scores = pytest.approx([one.score for one in expected], rel=1e-5, abs=1e-6)
    return [one.id for one in found] == [one.id for one in expected] and [one.score for one in found] == scores


class TechniqueConformance:
    """The contract of `ragistry.protocols.Technique`.

    ``query`` finds at least three documents. ``where`` is met by some of them and not by others; by default it is made
    from the metadata of the documents.
    """

    query: str = "how do I restore a backup?"
    where: Mapping[str, Any] | None = None

    @pytest.fixture
    def technique(self) -> Technique:
        raise NotImplementedError("override the fixture `technique`")

    @pytest.fixture
    def condition(self, technique: Technique) -> dict[str, Any]:
        """``where``, or a condition that the first document meets and another one does not."""
        found = technique.retrieve(self.query, top_k=1000)
        if self.where is not None:
            met = {matches(normalise(self.where), document.metadata) for document in found}
            assert met == {True, False}, f"where={self.where!r} must be met by some results and not by others"
            return dict(self.where)
        for key, value in found[0].metadata.items() if found else ():
            if isinstance(value, str | int) and any(one.metadata.get(key) not in (None, value) for one in found):
                return {key: value}
        pytest.fail(f"query={self.query!r} must find documents of several collections, or set `where` in the class")

    def test_returns_documents_best_first(self, technique: Technique) -> None:
        documents = technique.retrieve(self.query, top_k=10)
        assert len(documents) >= 3, "the query of the suite must find something"
        assert all(isinstance(document, Document) and document.content for document in documents)
        assert documents == ranked(documents), (
            "order documents with ranked() of ragistry.types, and give each the score that decides its place"
        )

    def test_returns_no_document_twice(self, technique: Technique) -> None:
        ids = [document.id for document in technique.retrieve(self.query, top_k=10)]
        assert all(ids)
        assert len(set(ids)) == len(ids)

    @pytest.mark.parametrize("top_k", [1, 2, 1000])
    def test_returns_no_more_than_asked_for(self, technique: Technique, top_k: int) -> None:
        assert 1 <= len(technique.retrieve(self.query, top_k=top_k)) <= top_k

    @pytest.mark.parametrize("top_k", [1, 2, 4, 10])
    def test_more_results_do_not_change_fewer_ones(self, technique: Technique, top_k: int) -> None:
        if not getattr(technique, "stable_order", True):
            pytest.skip("its class says that the order depends on top_k: stable_order = False")
        fewer, more = (technique.retrieve(self.query, top_k=number) for number in (top_k, 1000))
        assert same_answer(fewer, more[:top_k]), (
            "take candidates to a depth of your own and append what lies deeper, or set stable_order = False"
        )

    def test_keeps_to_the_condition(self, technique: Technique, condition: dict[str, Any]) -> None:
        documents = technique.retrieve(self.query, top_k=10, where=condition)
        assert documents
        meant = normalise(condition)
        assert all(is_outside(document) or matches(meant, document.metadata) for document in documents)

    def test_a_condition_that_nothing_meets_finds_nothing(self, technique: Technique) -> None:
        found = technique.retrieve(self.query, where={"collection": "no such collection"})
        assert all(map(is_outside, found))

    def test_the_same_question_has_the_same_answer(self, technique: Technique) -> None:
        assert same_answer(technique.retrieve(self.query, top_k=5), technique.retrieve(self.query, top_k=5))

    def test_changes_nothing_that_it_was_given(self, technique: Technique, condition: dict[str, Any]) -> None:
        where = copy.deepcopy(condition)
        first = technique.retrieve(self.query, top_k=3, where=where)
        assert where == condition
        first[0].metadata.clear()
        assert technique.retrieve(self.query, top_k=3, where=where)[0].metadata

    def test_takes_its_config_as_the_registry_gives_it(self, technique: Technique) -> None:
        if isinstance(technique, RegisteredTechnique):
            if technique.entry is not None:  # the registry has built it
                return
            technique = technique.technique
        cls: Any = type(technique)
        own = vars(technique)
        if (model := config_model(cls)) is None:
            return
        wanted = wanted_resources(cls)
        given = {name: own.get(name, own.get(f"_{name}")) for name in wanted}
        if any(given[name] is None for name, required in wanted.items() if required):
            pytest.skip(f"{cls.__name__} keeps not all that its constructor gets; make it with workspace.build")
        try:
            config = own.get("config", {})
            config = config if isinstance(config, model) else model.model_validate(config)
        except ValidationError:
            pytest.skip(f"{cls.__name__} has settings without a default; make it with workspace.build")
        try:
            made = cls(config, **{name: value for name, value in given.items() if value is not None})
            made.retrieve(self.query, top_k=3)
        except (AttributeError, KeyError, TypeError) as error:
            pytest.fail(f"{cls.__name__}: {error}; the registry passes config as a model, so read config.NAME")

    @pytest.mark.parametrize("query", ["", "  \n\t", "half a character: \ud83d"])
    def test_refuses_an_empty_query(self, technique: Technique, query: str) -> None:
        with pytest.raises(QueryError):
            RegisteredTechnique("tested", technique).retrieve(query)

    @pytest.mark.parametrize("top_k", [0, -1, 10_000])
    def test_refuses_a_bad_limit(self, technique: Technique, top_k: int) -> None:
        with pytest.raises(QueryError):
            RegisteredTechnique("tested", technique).retrieve(self.query, top_k=top_k)

    @pytest.mark.parametrize("where", [{}, {"page": {"$around": 3}}, {"$and": []}])
    def test_refuses_a_malformed_condition(self, technique: Technique, where: Mapping[str, Any]) -> None:
        with pytest.raises(QueryError):
            RegisteredTechnique("tested", technique).retrieve(self.query, where=where)

    @pytest.mark.parametrize(
        "query", ["x" * 20_000, "日本語 العربية 🙂", "\x00 null", "'; DROP TABLE chunks; --", "AND OR ("]
    )
    def test_odd_queries_are_answered(self, technique: Technique, query: str) -> None:
        assert isinstance(technique.retrieve(query, top_k=3), list)

    def test_serves_several_threads(self, technique: Technique) -> None:
        alone = technique.retrieve(self.query, top_k=5)
        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(lambda _: technique.retrieve(self.query, top_k=5), range(8))
            assert all(same_answer(answer, alone) for answer in answers)
