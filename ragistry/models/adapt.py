"""Adapt a model of a program: functions become generators and rerankers, and every call is counted in the trace."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, cast

from ragistry.errors import ConfigError, IncompleteAnswerError, ModelError
from ragistry.protocols import Embedder, Generator, Reranker, SparseEncoder
from ragistry.trace import at_least_one_call
from ragistry.types import EmbedderFingerprint, Role
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragistry.protocols import Vectors

PACKAGE = __name__.partition(".")[0]
JSON_ANSWER = "\n\nAnswer only with JSON that fits this schema:\n"
"""Added to the prompt for a function that takes no schema."""
FINGERPRINT = "set it to EmbedderFingerprint(provider, model, digest, dimension), by which a store knows its vectors"


def as_generator(model: Any) -> Generator:
    """Return a generator whose calls are counted; models of this package count their own and are returned unchanged.

    Args:
        model: An object with ``generate(prompt, *, schema=None)``, or a function of a prompt.

    Raises:
        ConfigError: It is neither, or the function has other parameters.
    """
    if is_built_in(model):
        return cast("Generator", model)
    is_object = callable(getattr(model, "generate", None))
    return CountedGenerator(model if is_object else GeneratorFunction(_function(model, "generator", "prompt")))


def as_reranker(model: Any) -> Reranker:
    """Return a reranker whose calls are counted; models of this package are returned unchanged.

    Args:
        model: An object with ``rerank(query, texts)``, or a function of a query and a list of texts.

    Raises:
        ConfigError: It is neither, or the function has other parameters.
    """
    if is_built_in(model):
        return cast("Reranker", model)
    is_object = callable(getattr(model, "rerank", None))
    return CountedReranker(model if is_object else RerankerFunction(_function(model, "reranker", "query", "texts")))


def as_embedder(model: Any) -> Embedder:
    """Return an embedder whose calls are counted; models of this package are returned unchanged.

    Args:
        model: An object with ``fingerprint`` and ``embed(texts, *, role)``. ``count_tokens`` is estimated without it.

    Raises:
        ConfigError: It has no ``embed`` or no ``fingerprint``.
    """
    return cast("Embedder", model) if is_built_in(model) else CountedEmbedder(model)


def as_encoder(model: Any) -> SparseEncoder:
    """Return a sparse encoder unchanged. Raises `ConfigError` if it has no ``encode`` or no ``fingerprint``."""
    if not callable(getattr(model, "encode", None)) or not hasattr(type(model), "fingerprint"):
        raise ConfigError(f"{name_of(model)} is not an encoder; it needs encode(texts, *, role) and fingerprint")
    return cast("SparseEncoder", model)


ADAPTERS = {"embedder": as_embedder, "encoder": as_encoder, "generator": as_generator, "reranker": as_reranker}


def name_of(model: Any) -> str:
    """Return the name of a model's class, or of its function, for messages."""
    while isinstance(model, Counted):
        model = model.own
    function = getattr(model, "function", None)
    return str(getattr(function, "__qualname__", type(model).__qualname__))


def is_built_in(one: object) -> bool:
    """Return whether the class of a model or a technique is part of this package."""
    return type(one).__module__.partition(".")[0] == PACKAGE


def _function(model: Any, kind: str, *parameters: str) -> Any:
    wanted, name = f"a function of {' and '.join(parameters)}", getattr(model, "__qualname__", repr(model))
    if not callable(model) or isinstance(model, type):
        raise ConfigError(f"{model!r:.80} is not a {kind}; pass an object with the methods of a {kind}, or {wanted}")
    try:
        inspect.signature(model).bind(*parameters, **({"schema": None} if _takes_schema(model) else {}))
    except TypeError as error:
        raise ConfigError(f"{name}{inspect.signature(model)} is not a {kind}: {error}; write {wanted}") from error
    except ValueError:  # a function in C without a signature
        pass
    _check_is_sync(model, name)
    return model


def _check_is_sync(method: Any, name: str) -> None:
    """Raise `ConfigError` for a coroutine function: the result would be a coroutine that nobody awaits."""
    if inspect.iscoroutinefunction(method):
        raise ConfigError(f"{name} is a coroutine function; write a function that returns its result")


def _takes_schema(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    return any(p.name == "schema" or p.kind is p.VAR_KEYWORD for p in parameters)


class GeneratorFunction:
    """A function of a prompt as a `Generator`. One that takes no ``schema`` gets the schema in the prompt."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._takes_schema = _takes_schema(function)

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        if self._takes_schema:
            return cast("str", self.function(prompt, schema=schema))
        asked = "" if schema is None else JSON_ANSWER + json.dumps(schema.model_json_schema())
        return cast("str", self.function(prompt + asked))


class RerankerFunction:
    """A function of a query and texts as a `Reranker`."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        return cast("list[float]", self.function(query, texts))


class Counted:
    """Passes everything else on to the model, such as ``close`` and the attributes that describe it."""

    _method = ""
    """The method that is counted, if the model is known to have it."""

    def __init__(self, own: Any) -> None:
        self.own = own
        if self._method:
            _check_is_sync(getattr(own, self._method), f"{type(own).__qualname__}.{self._method}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "own":  # also asked while an object is copied or unpickled
            raise AttributeError(name)
        return getattr(self.own, name)


class CountedGenerator(Counted):
    """A `Generator` whose calls are in the trace, with estimated tokens if it does not report its own."""

    _method = "generate"

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        """Return the answer of the model. Raises `IncompleteAnswerError` for None, `ModelError` for other values."""
        answer: Any = ""
        with at_least_one_call(lambda: _estimate(prompt, str(answer))):
            answer = self.own.generate(prompt, schema=schema)
        if answer is None:  # clients of OpenAI return it for a call of a tool
            raise IncompleteAnswerError(f"the generator {name_of(self)} returned None; it must return text")
        if not isinstance(answer, str):
            raise ModelError(f"the generator {name_of(self)} returned {answer!r:.80}; it must return text")
        return answer

    @property
    def stream(self) -> Any:
        """The model's own method ``stream``, counted; missing if the model does not have it."""
        stream = self.own.stream

        def counted(prompt: str) -> Iterator[str]:
            said: list[str] = []
            pieces, context, end = iter(stream(prompt)), copy_context(), object()
            call = at_least_one_call(lambda: _estimate(prompt, *said))
            context.run(call.__enter__)  # in a context of its own: the caller's code runs between two pieces
            try:
                while (piece := context.run(next, pieces, end)) is not end:
                    said.append(str(piece or ""))  # clients of OpenAI yield None for an event without text
                    yield said[-1]
            finally:
                context.run(call.__exit__, None, None, None)

        return counted


class CountedReranker(Counted):
    """A `Reranker` whose calls are in the trace."""

    _method = "rerank"

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        with at_least_one_call(lambda: _estimate(query) * len(texts) + _estimate(*texts)):
            scores: list[float] = self.own.rerank(query, texts)
        return scores


class CountedEmbedder(Counted):
    """An `Embedder` whose calls are in the trace. Its fingerprint may not change while it is in use."""

    def __init__(self, own: Any) -> None:
        super().__init__(own)
        self._first: EmbedderFingerprint | None = None
        name = f"{type(own).__qualname__}.embed"
        if not callable(embed := getattr(own, "embed", None)):
            raise ConfigError(f"{own!r:.80} is not an embedder; it needs embed(texts, *, role='document')")
        try:
            inspect.signature(embed).bind([], role="query")
        except TypeError as error:
            raise ConfigError(
                f"{name}{inspect.signature(embed)}: {error}; write embed(self, texts, *, role='document')"
            ) from error
        _check_is_sync(embed, name)
        if inspect.getattr_static(own, "fingerprint", None) is None:  # its value may need a server
            raise ConfigError(f"{type(own).__qualname__} has no fingerprint; {FINGERPRINT}")

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """The fingerprint of the model. Raises `ModelError` if it is of another type, or has changed."""
        now: Any = self.own.fingerprint
        name = f"{type(self.own).__qualname__}.fingerprint"
        if not isinstance(now, EmbedderFingerprint):
            raise ModelError(f"{name} is {now!r:.80}; {FINGERPRINT}")
        if self._first is None:
            self._first = now
        if now != self._first:
            raise ModelError(
                f"{name} has changed from {self._first!r} to {now!r}; it must stay the same, because vectors of "
                "different models cannot be compared"
            )
        return now

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """Return the vectors. Raises `ModelError` if they are not one of `dimension` finite numbers for each text."""
        import numpy as np  # not at the top: a model of a program may come without vectors

        wanted = (len(texts), self.fingerprint.dimension)
        if not texts:
            return np.empty(wanted, np.float32)
        with at_least_one_call(lambda: sum(self.count_tokens(texts))):
            found: Any = self.own.embed(texts, role=role)
        try:
            vectors = np.asarray(found, np.float32)
        except (TypeError, ValueError):
            vectors = np.array(0, np.float32)
        if vectors.shape != wanted or not np.isfinite(vectors).all():
            said = f"an array of shape {vectors.shape}" if vectors.ndim else f"{found!r:.80}"
            said += " with NaN or infinity" if vectors.shape == wanted else ""
            raise ModelError(
                f"{type(self.own).__qualname__}.embed returned {said}; for {numbered(len(texts), 'text[|s]')} it must "
                f"return finite numbers of shape {wanted}"
            )
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        count = getattr(self.own, "count_tokens", None)
        if callable(count):
            return list(count(texts))
        from ragistry.models.texts import estimate_tokens

        return estimate_tokens(texts)


def _estimate(*texts: str) -> int:
    return sum(-(-len(text.encode(errors="replace")) // 4) for text in texts)
