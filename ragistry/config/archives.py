"""The configuration of archives, which are collections that other programs fill on remote Chroma servers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from ragistry.config.problems import parse_config
from ragistry.utils.urls import public_url, split_login

MAX_ARCHIVES = 64
"""Maximum number of archives; each is searched in its own thread."""

NONE = "(none of these)"
"""The answer of a router's model that chooses nothing; no archive may have this name."""

TOP_K_RANGE = (1, 20)
"""Maximum number of passages, from each archive and in total."""
EVERY_LAYER = "*"
LONGEST_WAIT = 86_400
"""Maximum time-out in seconds; some functions do not accept much larger numbers."""

Language = Literal["en", "de"]


def clamped(top_k: int) -> int:
    """Return the number, limited to `TOP_K_RANGE`."""
    low, high = TOP_K_RANGE
    return max(low, min(high, top_k))


def checked_url(url: str) -> str:
    """Return the address of a server, with the scheme in lower case and without a final slash.

    Raises:
        ValueError: It is not an address of HTTP.
    """
    scheme = re.match(r"([a-z][a-z0-9+.-]*)://", url, re.IGNORECASE)
    if scheme is None:
        raise ValueError(f"the address {public_url(url)!r} has no scheme; write http://HOST:PORT")
    if scheme[1].lower() not in ("http", "https"):
        raise ValueError(f"the address {public_url(url)!r} has the scheme {scheme[1]!r}; write http://HOST:PORT")
    split_login(url)  # raises if a part of the password would be parsed as the host
    return scheme[0].lower() + url[scheme.end() :].rstrip("/")


def _as_path_segment(name: str) -> str:
    """Return the name of a tenant or database, which must not lead to another path in a URL of the server."""
    if not name or name in (".", "..") or not name.isprintable() or set(name) & set("/\\?#% "):
        raise ValueError(f"{name!r} cannot be the name of a tenant or database; use letters, digits, '_', '-' and '.'")
    return name


ServerURL = Annotated[str, AfterValidator(checked_url)]
"""May contain user name and password; without a port, the default of the scheme is used."""
Segment = Annotated[str, AfterValidator(_as_path_segment)]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_WAIT, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")]
OptionalURL = Annotated[ServerURL | None, BeforeValidator(lambda url: None if url == "" else url)]
"""An empty form field counts as not set, like an empty variable."""

Text = Annotated[str, BeforeValidator(lambda text: "" if text is None else text)]
"""Empty form fields and YAML keys without a value arrive as null."""


class ArchiveSettings(BaseModel):
    """Settings of all archives; the alias of each is its environment variable."""

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
    """Read the settings from the environment; an empty variable counts as not set.

    Raises:
        InvalidConfigError: A variable has an invalid value.
    """
    given = os.environ if environ is None else environ
    names = [str(field.alias) for field in ArchiveSettings.model_fields.values()]
    values = {name: value for name in names if (value := given.get(name, "").strip())}
    return parse_config(ArchiveSettings, values, "the environment")


def archive_environment(environ: Mapping[str, str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the value of each variable of `archive_settings`, and where it comes from."""
    settings = archive_settings(environ)
    origins = {
        str(field.alias): f"environment {field.alias}" if name in settings.model_fields_set else "default"
        for name, field in ArchiveSettings.model_fields.items()
    }
    return settings.model_dump(mode="json", by_alias=True), origins


def _free(name: str) -> str:
    if name == NONE:
        raise ValueError(f"{NONE!r} is reserved for routers; give the archive another name")
    return name


class RagArchiveConfig(BaseModel):
    """One archive: a collection on a Chroma server, and the model of its vectors.

    The environment sets fields that are None (`ArchiveSettings`). Unknown keys are errors: with a misspelt ``tenant``,
    the data of another tenant would be searched.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Annotated[Name, AfterValidator(_free)] = Field(description="its name in answers and for routers")
    collection_name: CollectionName = Field(description="its collection on the Chroma server")
    embedding_model: Name = Field(description="the model of its vectors")
    chromadb_url: OptionalURL = Field(default=None, repr=False, description="address of its Chroma server")
    tei_url: OptionalURL = Field(default=None, repr=False, description="address of the server that embeds queries")
    description: Text = Field(default="", description="what it contains, for agents and routers")
    layer: Name | None = Field(default=None, description="the layer to search; `*`: every layer")
    tenant: Segment | None = Field(default=None, description="tenant of the Chroma server")
    database: Segment | None = Field(default=None, description="database of the Chroma server")
    headers: Annotated[dict[str, str], BeforeValidator(lambda headers: {} if headers is None else headers)] = Field(
        default_factory=dict, repr=False, description="HTTP headers of each request, for a proxy"
    )


def distinct(archives: list[RagArchiveConfig]) -> list[RagArchiveConfig]:
    """Return the archives. Raises `ValueError` if two have the same name."""
    names = [archive.name for archive in archives]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"archive {twice[0]!r} is listed twice; rename one")
    return archives


Archives = Annotated[
    list[RagArchiveConfig],
    Field(max_length=MAX_ARCHIVES),
    AfterValidator(distinct),
    BeforeValidator(lambda archives: [] if archives is None else archives),
]
