"""Which archives an agent may search, as its platform hands them over in ``config["configurable"]["rag_config"]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from ragistry.config.parse import parse_config
from ragistry.errors import InvalidConfigError
from ragistry.tools.archive_settings import Language, ServerURL

KEY = "rag_config"
MAX_ARCHIVES = 64
"""Each is asked in a thread of its own."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")]


def _as_path_segment(name: str) -> str:
    """Tenant and database stand in the paths that a Chroma server is asked for, and must not lead elsewhere."""
    if not name or name in (".", "..") or not name.isprintable() or set(name) & set("/\\?#% "):
        raise ValueError(f"{name!r} cannot be the name of a tenant or database; use letters, digits, '_', '-' and '.'")
    return name


Segment = Annotated[str, AfterValidator(_as_path_segment)]


class RagArchiveConfig(BaseModel):
    """One archive: a collection of a Chroma server, and the model that its vectors come from.

    ``description``: what is in it, for the agent and for a router. What is None is as the environment says
    (`ArchiveSettings`); ``layer`` ``*`` searches every layer. ``headers`` go with each request, to a proxy that asks
    for them. Unknown keys are refused: a misspelt ``tenant`` would search that of somebody else.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    collection_name: CollectionName
    embedding_model: Name
    chromadb_url: ServerURL | None = None
    tei_url: ServerURL | None = None
    description: str = ""
    layer: Name | None = None
    tenant: Segment | None = None
    database: Segment | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)


class ChromaRagConfig(BaseModel):
    """The archives of one agent; ``language`` of the headings of an answer, None: as the environment says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    archives: list[RagArchiveConfig] = Field(default_factory=list, max_length=MAX_ARCHIVES)
    language: Language | None = None


def extract_rag_config(
    config: Mapping[str, Any] | None, assistant: Mapping[str, Any] | None = None
) -> ChromaRagConfig | None:
    """What ``config``, that of a thread or run, says of archives; None where there is nothing.

    ``assistant``: the configuration of the assistant, for what the thread leaves open. The thread's archives replace
    the assistant's whole, an empty list too; LangChain's ``merge_configs([assistant, thread])`` comes to the same.
    Raises `InvalidConfigError` with everything that is wrong.
    """
    for source in (config, assistant):
        configurable = (source or {}).get("configurable") or {}
        found = configurable.get(KEY) if isinstance(configurable, Mapping) else None
        if found is not None:
            return _parsed(found)
    return None


def _parsed(found: Any) -> ChromaRagConfig:
    if not isinstance(found, Mapping | ChromaRagConfig):
        raise InvalidConfigError(f"{KEY} is {found!r:.80}; write {{'archives': [...]}}")
    return found if isinstance(found, ChromaRagConfig) else parse_config(ChromaRagConfig, found, KEY)
