"""Models of a program: functions, and calls that are counted without their help."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import BaseModel

from ragistry.errors import ConfigError, ModelError
from ragistry.models.adapt import as_embedder, as_generator, as_reranker, name_of
from ragistry.protocols import Embedder, Generator, Reranker
from ragistry.stores.local import LocalStore
from ragistry.techniques.hyde import HyDETechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.rerank import RerankTechnique
from ragistry.trace import collect, model_call, stage
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.messages import check_message, refused
from tests.techniques.doubles import Ready, ids, scored, traced


class Own:
    """Every kind of model in one, which records nothing."""

    fingerprint = EmbedderFingerprint("own", "ones", "", 2)
    score_kind = "probability"

    def generate(self, prompt, *, schema=None):
        return "a passage"

    def rerank(self, query, texts):
        return [float(len(text)) for text in texts]

    def embed(self, texts, *, role="document"):
        return np.tile(np.array([[1, 0]], np.float32), (len(texts), 1))


class Reporting(Own):
    """Records its own calls."""

    def generate(self, prompt, *, schema=None):
        model_call(tokens=100)
        model_call(tokens=11)
        return "a passage"


class Roleless(Own):
    def embed(self, texts):
        return super().embed(texts)


async def coroutine(*_, **__):
    """What somebody writes who is used to async clients."""


class Streaming(Own):
    def stream(self, prompt):
        yield from ("a ", "passage")


def counted(call):
    """Return the calls and tokens that ``call`` adds to a stage."""
    with collect() as trace, stage("s"):
        call()
    return sum(one.model_calls for one in trace.stages()), sum(one.tokens for one in trace.stages())


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: as_generator(Own()).generate("12345678"), (1, 2 + 3)),
        (lambda: as_generator(lambda _: "four").generate("12345678"), (1, 3)),
        (lambda: as_generator(Reporting()).generate("12345678"), (2, 111)),
        (lambda: as_generator(as_generator(Reporting())).generate("12345678"), (2, 111)),
        (lambda: as_generator(lambda prompt: as_generator(Reporting()).generate(prompt)).generate("1"), (2, 111)),
        (lambda: list(as_generator(Streaming()).stream("12345678")), (1, 2 + 3)),
        (lambda: as_reranker(Own()).rerank("12345678", ["1234", "12345678"]), (1, 2 * 2 + 3)),
        (lambda: as_embedder(Own()).embed(["1234", "1234"]), (1, 6)),
    ],
)
def test_calls_and_tokens_are_counted_once(call, expected):
    assert counted(call) == expected


def test_calls_of_threads_are_all_counted():
    generator = as_generator(Own())
    with collect() as trace, stage("s"), ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(copy_context().run, generator.generate, "1234") for _ in range(20)]:
            future.result()
    assert [one.model_calls for one in trace.stages()] == [20]


@pytest.fixture
def store(tmp_path):
    with closing(LocalStore(tmp_path)) as opened:
        yield opened


def test_techniques_composed_by_hand_count_their_models(store):
    own, embedder = Own(), as_embedder(Own())
    store.add_documents([EmbeddedChunk(text, {}, [1, 0]) for text in ("oak", "granite")])
    naive = NaiveRAGTechnique({}, store=store, embedder=embedder)
    reranked = RerankTechnique({"weight": 1}, base=naive, reranker=as_reranker(own.rerank))
    assert [document.content for document in reranked.retrieve("stone")] == ["granite", "oak"]
    assert counted(lambda: reranked.retrieve("stone"))[0] == 2
    hyde = HyDETechnique({"n": 1}, store=store, embedder=embedder, generator=as_generator(own.generate))
    assert counted(lambda: hyde.retrieve("stone"))[0] >= 2


class Answer(BaseModel):
    number: int


def test_function_gets_the_schema_or_finds_it_in_the_prompt():
    prompts = []
    as_generator(lambda prompt: prompts.append(prompt) or "{}").generate("How many?", schema=Answer)
    assert "How many?" in prompts[0]
    assert '"number"' in prompts[0]
    assert as_generator(lambda prompt, *, schema: schema.__name__).generate("x", schema=Answer) == "Answer"
    assert as_generator(lambda prompt, **options: str(len(options))).generate("x") == "1"


def test_everything_else_is_the_models_own():
    generator, reranker = as_generator(Streaming()), as_reranker(Own())
    assert isinstance(generator, Generator)
    assert isinstance(reranker, Reranker)
    assert isinstance(as_embedder(Own()), Embedder)
    assert not hasattr(as_generator(Own()), "stream")
    assert reranker.score_kind == "probability"
    assert (name_of(reranker), name_of(as_reranker(len_of))) == ("Own", "len_of")
    assert pickle.loads(pickle.dumps(copy.copy(as_reranker(len_of)))).rerank("q", ["abc"]) == [3]


def len_of(query, texts):
    return [len(text) for text in texts]


def test_built_in_models_are_returned_unchanged():
    from ragistry.testing.hashed import HashingEmbedder

    embedder = HashingEmbedder()
    assert as_embedder(embedder) is embedder


@pytest.mark.parametrize(
    ("adapt", "model", "named"),
    [
        (as_generator, 5, "5"),
        (as_generator, lambda: "", "prompt"),
        (as_generator, lambda prompt, temperature: "", "temperature"),
        (as_generator, str, "str"),
        (as_reranker, lambda query: [], "query and texts"),
        (as_reranker, lambda query, texts, *, model: [], "model"),
        (as_reranker, {"rerank": 1}, "rerank"),
        (as_reranker, coroutine, "coroutine"),
        (as_generator, coroutine, "coroutine"),
        (as_generator, SimpleNamespace(generate=coroutine), "SimpleNamespace.generate"),
        (as_embedder, len, "len"),
        (as_embedder, Roleless, "role='document'"),
        (as_embedder, type("Later", (), {"fingerprint": Own.fingerprint, "embed": coroutine}), "Later.embed"),
    ],
)
def test_what_is_not_a_model_is_refused(adapt, model, named):
    with refused(ConfigError, named):
        adapt(model() if isinstance(model, type) and model is not str else model)


@pytest.mark.parametrize("answer", [None, 3, b"text", ["text"]])
def test_answer_that_is_not_text_is_an_error(answer):
    def own(prompt):
        return answer

    with refused(ModelError, "own", answer):
        as_generator(own).generate("prompt")


@pytest.mark.parametrize("scores", [None, [1], ["high", "low"], {"oak": 1, "granite": 2}, [("oak", 1), ("granite", 2)]])
def test_scores_that_are_no_numbers_leave_the_order_of_the_base(scores):
    def own(query, texts):
        return scores

    base = Ready(scored(a=2.0, b=1.0))
    documents, stages = traced(RerankTechnique({}, base=base, reranker=as_reranker(own)), "stone")
    assert ids(documents) == ["a", "b"]
    [said] = [stage.degraded for stage in stages if stage.degraded]
    check_message(said, "own", "2 finite scores")


@pytest.mark.parametrize(
    "vectors", [None, [[1.0, 0.0]], [[1.0], [0.0]], [1.0, 0.0], [[1.0, 0.0], [0.0, float("nan")]], [["a", "b"]] * 2]
)
def test_vectors_of_another_shape_are_an_error(vectors):
    class Shaped(Own):
        def embed(self, texts, *, role="document"):
            return vectors

    with refused(ModelError, "Shaped.embed", "(2, 2)"):
        as_embedder(Shaped()).embed(["oak", "granite"])
    assert as_embedder(Shaped()).embed([]).shape == (0, 2)


def test_embedder_without_a_fingerprint_or_with_one_that_changes_is_refused():
    class Unnamed(Own):
        fingerprint = None

    class Text(Own):
        fingerprint = "ones"

    class Changing(Own):
        made = 0

        @property
        def fingerprint(self):
            Changing.made += 1
            return EmbedderFingerprint("own", f"model {Changing.made}", "", 2)

    with refused(ConfigError, "Unnamed"):
        as_embedder(Unnamed())
    with refused(ModelError, "'ones'"):
        as_embedder(Text()).fingerprint  # noqa: B018
    embedder = as_embedder(Changing())
    assert embedder.fingerprint.model == "model 1"
    with refused(ModelError, "model 1", "model 2"):
        embedder.fingerprint  # noqa: B018
