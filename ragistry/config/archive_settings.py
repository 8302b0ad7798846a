"""What the environment decides of archives: where their servers are, how long to wait, how much to return."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ragistry.config.parse import parse_config

TOP_K_RANGE = (1, 20)
"""Passages of an answer, from each archive and in all."""
EVERY_LAYER = "*"

Language = Literal["en", "de"]


def clamped(top_k: int) -> int:
    """The nearest number that an archive may be asked for."""
    low, high = TOP_K_RANGE
    return max(low, min(high, top_k))


def checked_url(url: str) -> str:
    """The address of a server without a slash at its end. Raises `ValueError`."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the address {url!r} has no scheme; write http://HOST:PORT")
    return url.rstrip("/")


ServerURL = Annotated[str, AfterValidator(checked_url)]


class ArchiveSettings(BaseModel):
    """Each setting stands under the name of its variable, with what serves where that is not set."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_by_name=True, validate_by_alias=True)

    chromadb_url: ServerURL = Field(default="http://chromadb:8000", alias="DOCPROC_CHROMADB_URL")
    tei_url: ServerURL = Field(default="http://tei-embeddings:8080", alias="DOCPROC_TEI_EMBEDDINGS_URL")
    top_k: Annotated[int, AfterValidator(clamped)] = Field(default=5, alias="RAG_DEFAULT_TOP_K")
    layer: str = Field(default="chunk", alias="RAG_DEFAULT_LAYER", description=f"{EVERY_LAYER}: every layer")
    query_timeout: float = Field(default=5, gt=0, alias="RAG_QUERY_TIMEOUT_SECONDS", allow_inf_nan=False)
    embed_timeout: float = Field(default=10, gt=0, alias="RAG_EMBED_TIMEOUT_SECONDS", allow_inf_nan=False)
    language: Language = Field(default="en", alias="RAG_LANGUAGE", description="of the headings of an answer")
    tenant: str = Field(default="default_tenant", alias="CHROMA_TENANT")
    database: str = Field(default="default_database", alias="CHROMA_DATABASE")


def archive_settings(environ: Mapping[str, str] | None = None) -> ArchiveSettings:
    """The settings of the environment; an empty variable is one that is not set. Raises `InvalidConfigError`."""
    return parse_config(ArchiveSettings, _given(environ), "the environment")


def archive_environment(environ: Mapping[str, str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Each variable of `archive_settings` with the value that serves, and with who decided it."""
    values, given = archive_settings(environ).model_dump(mode="json", by_alias=True), _given(environ)
    return values, {name: f"environment {name}" if name in given else "default" for name in values}


def _given(environ: Mapping[str, str] | None) -> dict[str, str]:
    given = os.environ if environ is None else environ
    names = [str(field.alias) for field in ArchiveSettings.model_fields.values()]
    return {name: value for name in names if (value := given.get(name, "").strip())}
