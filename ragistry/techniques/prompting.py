"""Techniques that ask a generator: checked prompts, answers that fit a schema, remembered answers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from hashlib import sha256
from threading import Lock
from typing import Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field

from ragistry.config.problems import Configuration, parse_config
from ragistry.errors import ModelConnectionError, ModelError
from ragistry.protocols import DocumentStore, Generator, Technique
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.trace import degraded, stage
from ragistry.types import Document, Where
from ragistry.utils.model_output import parse_answer, without_reasoning
from ragistry.utils.wording import did_you_mean, shown

AT_ONCE = 4
"""Number of prompts sent in parallel."""
REMEMBERED = 1_000
"""Number of answers that a technique remembers."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")

Answer = TypeVar("Answer", bound=BaseModel)
Written = TypeVar("Written", str, list[str])


def _has_words(written: Written) -> Written:
    if not "".join(written).strip():
        raise ValueError("is empty")
    return written


HasWords = AfterValidator(_has_words)
"""A text or a list of texts of an answer that is not empty. An empty one would count as a success."""


class Text(BaseModel):
    """An answer that is taken as it is; the generator is asked for it without a schema."""

    text: str


class PromptedConfig(TechniqueConfig):
    """The settings of every technique that asks a generator."""

    strict: bool = Field(default=False, description="raise an error if the generator fails")


class PromptedTechnique(ABC):
    """A technique that asks a generator about the query or about the results of its base.

    A subclass declares its settings as ``Config`` and implements `search`. If the generator fails, ``self.prompter``
    gives None for the answer, and the technique returns what it can without it.
    """

    Config: type[PromptedConfig]
    asks_model = True

    def __init__(
        self, config: Configuration, *, base: Technique, generator: Generator, store: DocumentStore | None = None
    ) -> None:
        self.config: Any = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        self.prompter = Prompter(generator, store=store, strict=self.config.strict)

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        return self.search(query, self.config.checked_limit(query, top_k), where)

    @abstractmethod
    def search(self, query: str, top_k: int, where: Where | None) -> list[Document]:
        """Return at most ``top_k`` documents."""


def placeholders(*required: str, optional: Sequence[str] = ()) -> AfterValidator:
    """Make a validator of prompts: each required ``{name}`` occurs, and no unknown one.

    Other braces are plain text, so that a prompt may contain JSON.
    """
    known = [*required, *optional]

    def check(prompt: str) -> str:
        found = _PLACEHOLDER.findall(prompt)
        for name in found:
            if name not in known:
                there = ", ".join(f"{{{one}}}" for one in known)
                raise ValueError(f"has an unknown placeholder {{{name}}}{did_you_mean(name, known)}; use {there}")
        if missing := [f"{{{name}}}" for name in required if name not in found]:
            raise ValueError(f"must contain {' and '.join(missing)}, got {shown(prompt)}")
        return prompt

    return AfterValidator(check)


def filled(prompt: str, **values: object) -> str:
    """Fill in the placeholders of a prompt; a placeholder inside a value stays as it is."""
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), prompt)


def flat(text: str) -> str:
    """Join the lines of a text, so that it cannot imitate a line of the prompt."""
    return " ".join(text.split())


def numbered_passages(passages: Sequence[str], characters: int) -> str:
    """Write the passages as lines ``[1] …``, ``[2] …``, each cut to ``characters``."""
    return "\n".join(f"[{number}] {flat(passage)[:characters]}" for number, passage in enumerate(passages, 1))


class Prompter:
    """Asks a generator for one technique. Thread-safe.

    A remembered answer costs no call. Answers may quote passages, so all are forgotten when the version of the store
    changes (`LocalStore.version`); with a store without versions, none is remembered. The stores of a comparison have
    no versions, so that each query costs what it costs alone.

    Args:
        generator: The generator.
        store: The store whose passages are in the prompts.
        strict: Raise the generator's error instead of returning None.
    """

    def __init__(self, generator: Generator, *, store: object = None, strict: bool = False) -> None:
        self._generator = generator
        self._strict = strict
        version = getattr(store, "version", None)
        self._version: Callable[[], object] = version if callable(version) else lambda: None
        self._seen: object = None
        self._remembered: OrderedDict[tuple[bytes, type[BaseModel]], Any] = OrderedDict()
        self._lock = Lock()

    def ask(self, prompt: str, schema: type[Answer]) -> Answer | None:
        """Ask one prompt; see `ask_all`."""
        return self.ask_all([prompt], schema)[0]

    def ask_all(self, prompts: Sequence[str], schema: type[Answer]) -> list[Answer | None]:
        """Ask several prompts, some of them in parallel.

        Returns:
            The answer to each prompt; None if the generator failed. The current stage then reports ``degraded``.

        Raises:
            ModelError: The generator failed, and the prompter is strict.
        """
        version = self._version()
        answers = self._recalled(prompts, schema, version)
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in answers]
        failures: list[ModelError] = []

        def generate(prompt: str) -> Answer | None:
            if failures and (self._strict or isinstance(failures[-1], ModelConnectionError)):
                return None  # with a server that is down, each prompt would wait
            try:
                return self._generated(prompt, schema)
            except ModelError as error:
                failures.append(error)
                return None

        if len(missing) < 2:
            found = [generate(prompt) for prompt in missing]
        else:
            workers = ThreadPoolExecutor(min(AT_ONCE, len(missing)))
            try:
                futures = [workers.submit(copy_context().run, generate, prompt) for prompt in missing]
                found = [future.result() for future in futures]
            finally:
                workers.shutdown(wait=False, cancel_futures=True)  # so that Ctrl-C does not wait for a model
        new = {prompt: answer for prompt, answer in zip(missing, found, strict=True) if answer is not None}
        self._remember(new, schema, version)
        if failures and self._strict:
            raise failures[0]
        if failures:
            degraded(f"no answer to {len(missing) - len(new)} of {len(prompts)} prompts: {failures[0]}")
        answers |= new
        return [answers.get(prompt) for prompt in prompts]

    def _generated(self, prompt: str, schema: type[Answer]) -> Answer:
        """Ask the generator. Raises `ModelError`, also if the answer does not fit the schema."""
        with stage("generate"):
            text = generated(self._generator, prompt, None if schema is Text else schema)
        if schema is Text:
            if not (answer := without_reasoning(text).strip()):
                raise ModelError(f"the generator answered {shown(text)}, which has no text")
            return schema.model_validate({"text": answer})
        try:
            return parse_answer(text, schema.model_validate_json)
        except ValueError as error:
            raise ModelError(f"the generator answered {shown(text)}, which does not fit {schema.__name__}") from error

    def _recalled(self, prompts: Sequence[str], schema: type[Answer], version: object) -> dict[str, Answer]:
        with self._lock:
            if version != self._seen:
                self._remembered.clear()
                self._seen = version
            found = {}
            for prompt in prompts:
                key = (_digest(prompt), schema)
                if key in self._remembered:
                    self._remembered.move_to_end(key)
                    found[prompt] = self._remembered[key]
            return found

    def _remember(self, answers: dict[str, Answer], schema: type[Answer], version: object) -> None:
        with self._lock:
            if version is None or version != self._seen:  # unknown, or the store has changed meanwhile
                return
            self._remembered |= {(_digest(prompt), schema): answer for prompt, answer in answers.items()}
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)


def generated(generator: Generator, prompt: str, schema: type[BaseModel] | None) -> str:
    """Ask a generator, and report errors of its connection as `ModelConnectionError`."""
    try:
        return generator.generate(prompt, schema=schema)
    except ModelError:  # one of them is a ConnectionError as well
        raise
    except (TimeoutError, ConnectionError) as error:
        raise ModelConnectionError(f"the generator gave no answer: {error!r}; check that its server runs") from error


def _digest(prompt: str) -> bytes:
    """Return a key to keep instead of the prompt, whose passages should not be kept longer than needed."""
    return sha256(prompt.encode("utf-8", "surrogatepass")).digest()
