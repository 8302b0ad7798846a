"""What an entry of techniques.yaml says of the store must be what the store is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragistry.config.problems import Problems

if TYPE_CHECKING:
    from ragistry.techniques.registry import TechniqueRegistry

_SHORT = {"minilm": "all-minilm-l6-v2"}


def model_name(name: str) -> str:
    """An embedding model by its bare name: the server, the owner, the tag ``latest`` and case do not count."""
    name = name.partition(":")[2] if name.startswith(("ollama:", "openai:", "tei:")) else name
    name = name.rpartition("/")[2].removesuffix(":latest").lower()
    return _SHORT.get(name, name)


def check_agreement(registry: TechniqueRegistry, embed_model: str, chunk_size: int) -> None:
    """Raise `InvalidConfigError` for every ``embedding_model`` and ``chunk_size`` that differs from the settings."""
    problems = Problems()
    for name in registry.names():
        entry = registry.entry(name)
        model, size = entry.config.get("embedding_model"), entry.config.get("chunk_size")
        if isinstance(model, str) and embed_model != "tei" and model_name(model) != model_name(embed_model):
            problems.add(
                registry.file, [*entry.keys, "embedding_model"],
                f"techniques.{name}.embedding_model: {model!r}, but the store is made with {embed_model!r}; "
                f"set embed_model: {model} in documents.yaml and run `ragistry reembed`, or take this line out",
            )  # fmt: skip
        if isinstance(size, int) and size != chunk_size:
            problems.add(
                registry.file, [*entry.keys, "chunk_size"],
                f"techniques.{name}.chunk_size: {size}, but the store is made with chunks of {chunk_size}; "
                f"set chunk_size: {size} in documents.yaml and ingest again, or take this line out",
            )  # fmt: skip
    problems.report()
