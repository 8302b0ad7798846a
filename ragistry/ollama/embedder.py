"""A model of Ollama as an `Embedder`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragistry.models.http import LOAD_SECONDS, QUERY_SECONDS
from ragistry.models.known import known_model, prefixes_of
from ragistry.models.texts import check_texts, estimate_tokens, unit_rows
from ragistry.ollama.client import OllamaClient, full_name
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


class OllamaEmbedder:
    """Embeds with one model of an Ollama server; the first request is sent on first use.

    Args:
        model: Name of the model.
        client: A shared client; None to create one for ``host``.
        host: See `OllamaClient`.
        batch_size: Maximum number of texts per request.
        prefixes: Prefix of each role; None for those the model was trained with (`KNOWN_MODELS`).
        options: Ollama's options for each call.
        load_timeout: Seconds for the first request, which may load the model, unless there is a ``client``.

    Of a text longer than the model's limit, the beginning is embedded, which is logged and traced.
    """

    def __init__(
        self,
        model: str = "nomic-embed-text",
        *,
        client: OllamaClient | None = None,
        host: str | None = None,
        batch_size: int = 32,
        prefixes: Mapping[Role, str] | None = None,
        options: Mapping[str, Any] | None = None,
        load_timeout: float = LOAD_SECONDS,
    ) -> None:
        self.model = model
        self._client = client or OllamaClient(host, timeout=QUERY_SECONDS, load_timeout=load_timeout)
        self._batch_size = batch_size
        self._prefixes = prefixes_of(model) if prefixes is None else prefixes
        self._options = options
        self._fingerprint: EmbedderFingerprint | None = None

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Requested from the server once. Raises `ModelError`."""
        # Not `cached_property`: in Python 3.11 it has one lock for all objects of the class, so a server that hangs
        # would block the others.
        if self._fingerprint is None:
            known = known_model(self.model)
            self._fingerprint = EmbedderFingerprint(
                provider="ollama",
                model=full_name(self.model).removesuffix(":latest"),
                digest=self._client.digest(self.model),
                dimension=len(self._client.embed("dimension", self.model, options=self._options)),
                query_prefix=self._prefixes["query"],
                document_prefix=self._prefixes["document"],
                max_tokens=self._client.window(self.model, self._options) or (known.max_tokens if known else 0),
            )
        return self._fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """See `ragistry.protocols.Embedder`."""
        vectors = self._client.vectors(
            [self._prefixes[role] + text for text in check_texts(texts)],
            self.model,
            batch_size=self._batch_size,
            on_long="truncate",
            options=self._options,
        )
        return unit_rows(vectors, self.fingerprint.dimension)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`, by `estimate_tokens`: Ollama does not offer its tokenizer."""
        return estimate_tokens([self._prefixes["document"] + text for text in check_texts(texts)])

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()
