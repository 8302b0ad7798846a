"""Embed a query with Text Embeddings Inference or another server with OpenAI's protocol."""

from __future__ import annotations

from contextlib import closing

from ragistry.config.archive_settings import archive_settings
from ragistry.models.openai import OpenAICompatibleEmbedder


def embed_query(
    text: str, embedding_model: str, tei_url: str | None = None, timeout: float | None = None
) -> list[float]:
    """The vector of a query: ``(d,)`` floats of unit length, by ``POST {tei_url}/v1/embeddings``.

    ``tei_url`` None: ``DOCPROC_TEI_EMBEDDINGS_URL``; ``timeout``, in seconds for each request, None:
    ``RAG_EMBED_TIMEOUT_SECONDS``. Raises `ModelConnectionError`, `ModelNotFoundError` if another model is served,
    `EmbeddingGenerationError`, `ModelError`.
    """
    settings = archive_settings()
    seconds = settings.embed_timeout if timeout is None else timeout
    with closing(query_embedder(embedding_model, tei_url or settings.tei_url, seconds)) as embedder:
        return [float(value) for value in embedder.embed([text], role="query")[0]]


def query_embedder(embedding_model: str, tei_url: str, timeout: float) -> OpenAICompatibleEmbedder:
    """An embedder without retries, so that callers wait for ``timeout`` only once, and without prefix, because it is
    unknown whether the documents of an archive have one. It needs no probe, because archives record no fingerprint.
    """
    return OpenAICompatibleEmbedder(
        embedding_model, url=tei_url, query_prefix="", document_prefix="", probe=False, timeout=timeout, attempts=1
    )
