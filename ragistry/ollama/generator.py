"""A model of Ollama as a `Generator`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, Field

from ragistry.config.archives import Seconds
from ragistry.config.models import ApiKey
from ragistry.config.numbers import NumberOrNone, WholeOrNone
from ragistry.models.answers import messages_of
from ragistry.models.http import ANSWER_SECONDS, LOAD_SECONDS
from ragistry.ollama.client import OllamaClient


class OllamaGenerator:
    """Answers prompts with one model.

    Time-outs are not retried.

    Args:
        model: Name of the model.
        url: Address of the server; None for ``ollama_host``, ``OLLAMA_HOST``, or this machine.
        ollama_host: Address from the settings of the workspace.
        api_key: See `OllamaClient`.
        system: System message before every prompt.
        temperature: 0 takes the likeliest words, so that equal prompts get equal answers; None for the model's default.
        max_tokens: Maximum length of an answer.
        timeout: Seconds for one complete answer; None for 300 for the first, which may load the model, and then 120.
        options: Ollama's options, passed on unchanged.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        ollama_host: str | None = None,
        api_key: ApiKey = None,
        system: str | None = None,
        temperature: Annotated[NumberOrNone, Field(ge=0)] = 0.0,
        max_tokens: Annotated[WholeOrNone, Field(ge=1)] = None,
        timeout: Seconds | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self._client = OllamaClient(
            url or ollama_host,
            timeout=timeout or ANSWER_SECONDS,
            load_timeout=timeout or LOAD_SECONDS,
            retry_timeouts=False,
            api_key=api_key,
        )
        self._system = system
        settings = {"temperature": temperature, "num_predict": max_tokens}
        self._options = {name: value for name, value in settings.items() if value is not None} | dict(options or {})

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        """See `ragistry.protocols.Generator`."""
        return self._client.generate(prompt, self.model, system=self._system, schema=schema, options=self._options)

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the pieces of the answer as they arrive. Raises `ModelError`."""
        return self._client.stream(messages_of(prompt, self._system), self.model, options=self._options)

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()
