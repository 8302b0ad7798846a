"""Settings of archives from the environment: addresses of servers, time-outs, number of results."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ragistry.config.parse import parse_config
from ragistry.utils.urls import public_url, split_login

TOP_K_RANGE = (1, 20)
"""Maximum number of passages, from each archive and in total."""
EVERY_LAYER = "*"
LONGEST_WAIT = 86_400
"""Maximum time-out in seconds; some functions do not accept much larger numbers."""

Language = Literal["en", "de"]


def clamped(top_k: int) -> int:
    """The number clamped to the allowed range."""
    low, high = TOP_K_RANGE
    return max(low, min(high, top_k))


def checked_url(url: str) -> str:
    """The address of a server, with the scheme in lower case and without a final slash. Raises `ValueError`."""
    scheme = re.match(r"([a-z][a-z0-9+.-]*)://", url, re.IGNORECASE)
    if scheme is None:
        raise ValueError(f"the address {public_url(url)!r} has no scheme; write http://HOST:PORT")
    if scheme[1].lower() not in ("http", "https"):
        raise ValueError(f"the address {public_url(url)!r} has the scheme {scheme[1]!r}; write http://HOST:PORT")
    split_login(url)  # raises if a part of the password would be parsed as the host
    return scheme[0].lower() + url[scheme.end() :].rstrip("/")


def _as_path_segment(name: str) -> str:
    """Tenant and database are parts of URL paths of a Chroma server, and must not lead to other paths."""
    if not name or name in (".", "..") or not name.isprintable() or set(name) & set("/\\?#% "):
        raise ValueError(f"{name!r} cannot be the name of a tenant or database; use letters, digits, '_', '-' and '.'")
    return name


ServerURL = Annotated[str, AfterValidator(checked_url)]
"""May contain user name and password; without a port, the default of the scheme is used."""
Segment = Annotated[str, AfterValidator(_as_path_segment)]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_WAIT, allow_inf_nan=False)]


class ArchiveSettings(BaseModel):
    """Each setting with its environment variable as alias, and the default."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", validate_by_name=True, validate_by_alias=True, hide_input_in_errors=True,
        defer_build=True,
    )  # fmt: skip

    chromadb_url: ServerURL = Field(default="http://chromadb:8000", alias="DOCPROC_CHROMADB_URL", repr=False)
    tei_url: ServerURL = Field(default="http://tei-embeddings:8080", alias="DOCPROC_TEI_EMBEDDINGS_URL", repr=False)
    top_k: Annotated[int, AfterValidator(clamped)] = Field(default=5, alias="RAG_DEFAULT_TOP_K")
    layer: str = Field(default="chunk", alias="RAG_DEFAULT_LAYER", description=f"{EVERY_LAYER}: every layer")
    query_timeout: Seconds = Field(default=5, alias="RAG_QUERY_TIMEOUT_SECONDS")
    embed_timeout: Seconds = Field(default=10, alias="RAG_EMBED_TIMEOUT_SECONDS")
    language: Language = Field(default="en", alias="RAG_LANGUAGE", description="language of the headings of an answer")
    tenant: Segment = Field(default="default_tenant", alias="CHROMA_TENANT")
    database: Segment = Field(default="default_database", alias="CHROMA_DATABASE")


def archive_settings(environ: Mapping[str, str] | None = None) -> ArchiveSettings:
    """The settings from the environment; an empty variable counts as not set. Raises `InvalidConfigError`."""
    return parse_config(ArchiveSettings, _given(environ), "the environment")


def archive_environment(environ: Mapping[str, str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Each variable of `archive_settings` with its value and origin."""
    values, given = archive_settings(environ).model_dump(mode="json", by_alias=True), _given(environ)
    return values, {name: f"environment {name}" if name in given else "default" for name in values}


def _given(environ: Mapping[str, str] | None) -> dict[str, str]:
    given = os.environ if environ is None else environ
    names = [str(field.alias) for field in ArchiveSettings.model_fields.values()]
    return {name: value for name in names if (value := given.get(name, "").strip())}
