"""Known embedding models: the prefixes they were trained with, their limits, and published figures.

Servers add no prefixes, and a model ranks worse without them: nomic-embed-text loses 0.2 of its nDCG@10 on SciFact.
Each entry follows the model's card on huggingface.co.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ragistry.text.languages import language_name
from ragistry.types import KNOWN, Fit, Role


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Prefixes, maximum tokens, and suitable sizes of chunks and overlaps in characters.

    ``languages``: how many it supports; ``"en"`` for English only. ``dimension``: 0 if sizes differ. ``scifact``:
    nDCG@10 on SciFact as published (`SOURCE`), which says little about other documents; None if not known here.
    """

    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = 512
    chunk_size: int = 1500
    chunk_overlap: int = 200
    languages: Literal["en", "many"] = "en"
    dimension: int = 0
    license: str = ""
    scifact: float | None = None


SOURCE = "MTEB, retrieval, as published"

_PASSAGES = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# The best of eleven settings on both halves of 472 questions whose answers are ranges of characters (Smith and
# Troynikov, 2024); 700 without overlap finds as many answers in fewer characters.
_MINILM = KnownModel(
    max_tokens=256, chunk_size=1000, chunk_overlap=150, dimension=384, license="Apache-2.0", scifact=0.645
)
_NOMIC = KnownModel("search_query: ", "search_document: ", max_tokens=2048, dimension=768, license="Apache-2.0")
_E5 = KnownModel("query: ", "passage: ", license="MIT")
_BGE = KnownModel(_PASSAGES, license="MIT")
_ARCTIC2 = KnownModel("query: ", max_tokens=8192, languages="many", license="Apache-2.0")

KNOWN_MODELS: dict[str, KnownModel] = {
    "minilm": _MINILM,
    "all-minilm": _MINILM,
    "nomic-embed-text": _NOMIC,  # 8,192 tokens only with rotary scaling, which Ollama and llama.cpp do not use
    "nomic-embed-text-v2-moe": KnownModel("search_query: ", "search_document: ", languages="many"),
    "mxbai-embed-large": KnownModel(_PASSAGES, dimension=1024, license="Apache-2.0"),
    "mdbr-leaf-ir": KnownModel(_PASSAGES, dimension=768, license="Apache-2.0", scifact=0.706),
    "snowflake-arctic-embed": KnownModel(_PASSAGES),
    "snowflake-arctic-embed2": _ARCTIC2,
    "snowflake-arctic-embed-m-v2.0": _ARCTIC2,
    "snowflake-arctic-embed-l-v2.0": _ARCTIC2,
    "bge-m3": KnownModel(max_tokens=8192, languages="many", dimension=1024, license="MIT"),
    "bge-small-en": replace(_BGE, dimension=384, scifact=0.713),
    "bge-base-en": replace(_BGE, dimension=768),
    "bge-large": replace(_BGE, dimension=1024),  # Ollama's name of bge-large-en-v1.5
    "e5-small": replace(_E5, dimension=384),
    "e5-base": replace(_E5, dimension=768),
    "e5-large": replace(_E5, dimension=1024),
    "multilingual-e5": replace(_E5, languages="many"),
    "multilingual-e5-large-instruct": KnownModel(f"{_INSTRUCT} ", languages="many"),
    "embeddinggemma": KnownModel(
        "task: search result | query: ", "title: none | text: ", max_tokens=2048, languages="many"
    ),
    "qwen3-embedding": KnownModel(_INSTRUCT, max_tokens=32768, languages="many"),
    "granite-embedding": KnownModel(license="Apache-2.0"),
    "granite-embedding-small-english-r2": KnownModel(
        max_tokens=8192, dimension=384, license="Apache-2.0", scifact=0.755
    ),
    "gte-small": KnownModel(),
    "gte-base": KnownModel(),
    "gte-large": KnownModel(),
    "paraphrase-multilingual": KnownModel(max_tokens=128, chunk_size=500, chunk_overlap=75, languages="many"),
}


def known_model(name: str) -> KnownModel | None:
    """Find a model by any of its names: ``nomic-embed-text:latest``, ``nomic-ai/nomic-embed-text-v1.5``.

    Owner, tag and case are ignored. An entry also matches its versions (``bge-base-en-v1.5``); the longest match wins.
    None for an unknown model.
    """
    bare = name.lower().rpartition("/")[2].partition(":")[0]
    fitting = [known for known in KNOWN_MODELS if bare == known or bare.startswith(f"{known}-")]
    return KNOWN_MODELS[max(fitting, key=len)] if fitting else None


def is_english(name: str) -> bool:
    """Return whether the model is known to support English only."""
    known = known_model(name)
    return known is not None and known.languages == "en"


def fit_line(fit: Fit | None) -> str:
    """Say that an embedder hardly knows the texts of its store; empty if it knows them, or if that is unknown."""
    if fit is None or not fit.is_weak:
        return ""
    is_foreign = is_english(fit.model) and fit.language not in ("", "en")
    remedy = f"; `embed_model: multilingual` is made for {language_name(fit.language)}" if is_foreign else ""
    return f"{fit.model} hardly knows these texts ({max(0, fit.score):.2f} of {KNOWN}), so words decide{remedy}"


def prefixes_of(model: str) -> dict[Role, str]:
    """Return the prefix of each role that the model was trained with."""
    known = known_model(model) or KnownModel()
    return {"query": known.query_prefix, "document": known.document_prefix}
