"""The embedder that a name stands for, and how long its chunks should be."""

from __future__ import annotations

from ragistry.errors import ConfigError
from ragistry.models.cached import cached
from ragistry.models.known import KNOWN_MODELS, known_model
from ragistry.protocols import Embedder
from ragistry.utils.suggest import did_you_mean

EMBEDDED = ("minilm", "all-MiniLM-L6-v2")
SERVERS = ("tei", "openai")


def uses_ollama(name: str) -> bool:
    """Whether a setting ``embed_model`` means a model of Ollama."""
    return name not in EMBEDDED and name.partition(":")[0] not in SERVERS


def choose_embedder(
    name: str, *, url: str | None = None, api_key: str | None = None, ollama_host: str | None = None
) -> Embedder:
    """Make the embedder of a setting ``embed_model``; nothing is loaded or called yet.

    ``minilm`` is embedded; a known model's name or ``ollama:MODEL`` is Ollama's; ``tei``, ``tei:MODEL`` and
    ``openai:MODEL`` are at ``url``, which is sent ``api_key``. Raises `ConfigError` for anything else.
    """
    provider, _, model = name.partition(":")
    if name in EMBEDDED:
        from ragistry.models.minilm import MiniLMEmbedder

        return cached(MiniLMEmbedder())
    if provider in SERVERS:
        return cached(_at_server(name, provider, model, url, api_key))
    if (provider == "ollama" and model) or known_model(name) is not None:
        from ragistry.models.ollama import OllamaEmbedder

        return cached(OllamaEmbedder(model if provider == "ollama" else name, host=ollama_host))
    known = [*EMBEDDED, *SERVERS, *KNOWN_MODELS]
    raise ConfigError(
        f"unknown embed_model {name!r}{did_you_mean(name, known)}; there are minilm, tei, openai:MODEL, "
        f"{', '.join(model for model in KNOWN_MODELS if model not in EMBEDDED)}, and ollama:MODEL for any other model "
        "of Ollama"
    )


def _at_server(name: str, provider: str, model: str, url: str | None, api_key: str | None) -> Embedder:
    from ragistry.models.openai_compatible import OpenAICompatibleEmbedder

    if not url:
        raise ConfigError(f"embed_model {name!r} needs the server's address; set embed_url: http://HOST:PORT")
    if provider == "openai" and not model:
        raise ConfigError("embed_model 'openai' needs a model; write openai:MODEL")
    return OpenAICompatibleEmbedder(model or None, base_url=url, api_key=api_key)


def chunking_of(name: str) -> tuple[int, int]:
    """Characters of a chunk and of its overlap that suit the model: 1000 and 150 where it is not known."""
    model = known_model(name.partition(":")[2] if name.startswith(("ollama:", "tei:", "openai:")) else name)
    return (1000, 150) if model is None else (model.chunk_size, model.chunk_overlap)
