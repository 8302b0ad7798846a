"""Embeddings by a model of Ollama."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragistry.models.known import known_model
from ragistry.models.rows import prefixed, prefixes_of, unit_rows
from ragistry.ollama.batches import OnLong
from ragistry.ollama.client import OllamaClient
from ragistry.ollama.models import full_name
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


class OllamaEmbedder:
    """Embeds with one model of an Ollama server; nothing is called before the first use.

    ``client``, or ``host`` for a client of its own. The prefixes are those that the model was trained with
    (`KNOWN_MODELS`) unless given; ``on_long`` and ``options`` as in `OllamaClient.embed_batch`.
    """

    def __init__(
        self,
        model: str = "nomic-embed-text",
        *,
        client: OllamaClient | None = None,
        host: str | None = None,
        batch_size: int = 32,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        on_long: OnLong = "truncate",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self._client = client or OllamaClient(host)
        self._batch_size = batch_size
        self._prefixes = prefixes_of(model, query_prefix, document_prefix)
        self._on_long = on_long
        self._options = options
        self._fingerprint: EmbedderFingerprint | None = None

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Asked of the server once; raises `ModelError`."""
        # Not `cached_property`: that of Python 3.11 has one lock for all objects of the class, which would be held
        # while a server hangs.
        if self._fingerprint is None:
            self._fingerprint = self._asked_fingerprint()
        return self._fingerprint

    def _asked_fingerprint(self) -> EmbedderFingerprint:
        dimension = len(self._client.embed("dimension", self.model, options=self._options))
        known = known_model(self.model)
        return EmbedderFingerprint(
            provider="ollama",
            model=full_name(self.model).removesuffix(":latest"),
            digest=self._client.digest(self.model),
            dimension=dimension,
            query_prefix=self._prefixes["query"],
            document_prefix=self._prefixes["document"],
            max_tokens=self._client.window(self.model, self._options) or (known.max_tokens if known else 0),
        )

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """See `ragistry.protocols.Embedder`."""
        vectors = self._client.embed_batch(
            prefixed(texts, self._prefixes[role]),
            self.model,
            batch_size=self._batch_size,
            on_long=self._on_long,
            options=self._options,
        )
        return unit_rows(vectors, self.fingerprint.dimension)

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()
