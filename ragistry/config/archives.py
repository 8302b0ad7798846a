"""What describes an archive: a collection of a remote Chroma server that another program fills."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from ragistry.config.archive_settings import Segment, ServerURL

MAX_ARCHIVES = 64
"""Each is asked in a thread of its own."""

NONE = "(none of these)"
"""What a router's model answers with to choose nothing, so no archive is called so."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")]
OptionalURL = Annotated[ServerURL | None, BeforeValidator(lambda url: None if url == "" else url)]
"""An empty field of a form means that nothing is set, as an empty variable does."""

Text = Annotated[str, BeforeValidator(lambda text: "" if text is None else text)]
"""What a form, or a key of YAML with nothing after it, leaves empty comes as null."""


def _free(name: str) -> str:
    if name == NONE:
        raise ValueError(f"{NONE!r} is how a router says that nothing fits; give the archive another name")
    return name


class RagArchiveConfig(BaseModel):
    """One archive: a collection of a Chroma server, and the model that its vectors come from.

    What is None is as the environment says (`ArchiveSettings`). Unknown keys are refused: a misspelt ``tenant`` would
    search that of another tenant.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Annotated[Name, AfterValidator(_free)] = Field(description="how it is called: in answers, and by a router")
    collection_name: CollectionName = Field(description="its collection on the Chroma server")
    embedding_model: Name = Field(description="the model that its vectors come from")
    chromadb_url: OptionalURL = Field(default=None, repr=False, description="address of its Chroma server")
    tei_url: OptionalURL = Field(default=None, repr=False, description="address of the server that embeds queries")
    description: Text = Field(default="", description="what is in it, for agents and routers")
    layer: Name | None = Field(default=None, description="the layer that is searched; `*`: every layer")
    tenant: Segment | None = Field(default=None, description="tenant of the Chroma server")
    database: Segment | None = Field(default=None, description="database of the Chroma server")
    headers: Annotated[dict[str, str], BeforeValidator(lambda headers: {} if headers is None else headers)] = Field(
        default_factory=dict, repr=False, description="sent with each request, to a proxy that asks for them"
    )


def distinct(archives: list[RagArchiveConfig]) -> list[RagArchiveConfig]:
    """The archives themselves. Raises `ValueError` where two have one name, by which they are chosen."""
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
