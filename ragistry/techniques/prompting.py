"""Prompts of techniques: checked placeholders, answers that fit a schema, remembered answers."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from hashlib import sha256
from threading import Lock
from typing import Any, TypeVar

from pydantic import AfterValidator, BaseModel

from ragistry.errors import ModelConnectionError, ModelError
from ragistry.protocols import Generator
from ragistry.trace import degraded, stage
from ragistry.utils.model_output import parse_answer
from ragistry.utils.wording import did_you_mean, shown

AT_ONCE = 4
"""Number of prompts sent in parallel."""
REMEMBERED = 1_000
"""Number of answers that a technique remembers."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")

Answer = TypeVar("Answer", bound=BaseModel)


def placeholders(*required: str, optional: Sequence[str] = ()) -> AfterValidator:
    """Checks a configured prompt: it has each required ``{name}`` and no unknown one.

    Other braces are plain text, so that a prompt may contain JSON.
    """
    known = [*required, *optional]

    def check(prompt: str) -> str:
        found = _PLACEHOLDER.findall(prompt)
        for name in found:
            if name not in known:
                there = ", ".join(f"{{{one}}}" for one in known)
                raise ValueError(f"has an unknown placeholder {{{name}}}{did_you_mean(name, known)}; there are {there}")
        if missing := [f"{{{name}}}" for name in required if name not in found]:
            raise ValueError(f"must contain {' and '.join(missing)}, got {shown(prompt)}")
        return prompt

    return AfterValidator(check)


def filled(prompt: str, **values: object) -> str:
    """The prompt with its placeholders filled in; a placeholder inside a value stays as it is."""
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), prompt)


def flat(text: str) -> str:
    """The text on one line, so that it cannot imitate a line of the prompt."""
    return " ".join(text.split())


def numbered(passages: Sequence[str], characters: int) -> str:
    """The passages as lines ``[1] …``, ``[2] …``, each cut to ``characters``."""
    return "\n".join(f"[{number}] {flat(passage)[:characters]}" for number, passage in enumerate(passages, 1))


class Prompter:
    """Asks a generator for one technique. Thread-safe.

    A remembered answer costs no call. Answers may quote passages, so all are forgotten when the version of ``store``
    changes (`LocalStore.version`); with a store without versions, none is remembered. The stores of a comparison have
    no versions, so that each query costs what it costs alone. ``strict``: raise if the generator fails.
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
        """The answer, or None; see `ask_all`."""
        return self.ask_all([prompt], schema)[0]

    def ask_all(self, prompts: Sequence[str], schema: type[Answer]) -> list[Answer | None]:
        """The answer to each prompt, or None if the generator failed; the current stage then reports ``degraded``.

        Raises the generator's `ModelError` if ``strict``.
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
            with ThreadPoolExecutor(min(AT_ONCE, len(missing))) as workers:
                futures = [workers.submit(copy_context().run, generate, prompt) for prompt in missing]
                found = [future.result() for future in futures]
        new = {prompt: answer for prompt, answer in zip(missing, found, strict=True) if answer is not None}
        self._remember(new, schema, version)
        if failures and self._strict:
            raise failures[0]
        if failures:
            degraded(f"no answer to {len(missing) - len(new)} of {len(prompts)} prompts: {failures[0]}")
        answers |= new
        return [answers.get(prompt) for prompt in prompts]

    def _generated(self, prompt: str, schema: type[Answer]) -> Answer:
        """The answer of the generator, asked again once if it does not fit the schema. Raises `ModelError`."""
        with stage("generate"):
            try:
                text = self._generator.generate(prompt, schema=schema)
            except ModelError:  # one of them is a ConnectionError as well
                raise
            except (TimeoutError, ConnectionError) as error:
                raise ModelConnectionError(
                    f"the generator gave no answer: {error!r}; check that its server runs"
                ) from error
        try:
            return parse_answer(text, schema.model_validate_json)
        except ValueError as error:
            raise ModelError(f"the generator said {shown(text)}, which does not fit {schema.__name__}") from error

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


def _digest(prompt: str) -> bytes:
    """A key instead of the prompt, whose passages should not be kept longer than needed."""
    return sha256(prompt.encode("utf-8", "surrogatepass")).digest()
