"""The configuration of an archive: a collection on a remote Chroma server that another program fills."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from ragistry.config.archive_settings import Segment, ServerURL

MAX_ARCHIVES = 64
"""Maximum number of archives; each is searched in its own thread."""

NONE = "(none of these)"
"""The answer of a router's model that chooses nothing; no archive may have this name."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")]
OptionalURL = Annotated[ServerURL | None, BeforeValidator(lambda url: None if url == "" else url)]
"""An empty form field counts as not set, like an empty variable."""

Text = Annotated[str, BeforeValidator(lambda text: "" if text is None else text)]
"""Empty form fields and YAML keys without a value arrive as null."""


def _free(name: str) -> str:
    if name == NONE:
        raise ValueError(f"{NONE!r} is how a router says that nothing fits; give the archive another name")
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
    """The archives. Raises `ValueError` if two have the same name."""
    names = [archive.name for archive in archives]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"archive {twice[0]!r} stands here twice; names must differ")
    return archives


Archives = Annotated[
    list[RagArchiveConfig],
    Field(max_length=MAX_ARCHIVES),
    AfterValidator(distinct),
    BeforeValidator(lambda archives: [] if archives is None else archives),
]
