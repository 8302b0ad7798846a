"""A model of Ollama as a `Generator`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from ragistry.ollama.client import OllamaClient

REPEATABLE: Mapping[str, Any] = {"temperature": 0}
"""The options of a model that is to give the same answer twice."""


class OllamaGenerator:
    """Answers prompts with one model; ``client`` defaults to the Ollama of this machine or of ``OLLAMA_HOST``.

    ``system`` goes before every prompt. ``options``: Ollama's; by default the likeliest words are taken, so that the
    same prompt gives the same answer.
    """

    def __init__(
        self,
        model: str,
        client: OllamaClient | None = None,
        *,
        system: str | None = None,
        options: Mapping[str, Any] = REPEATABLE,
    ) -> None:
        self.model = model
        self._client = client or OllamaClient()
        self._system = system
        self._options = options

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        """See `ragistry.protocols.Generator`."""
        return self._client.generate(prompt, self.model, system=self._system, schema=schema, options=self._options)

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()
