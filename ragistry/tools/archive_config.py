"""Which archives an agent may search, as its platform hands them over in ``config["configurable"]["rag_config"]``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.archives import Archives, Language
from ragistry.config.parse import parse_config
from ragistry.errors import InvalidConfigError
from ragistry.utils.wording import shown

KEY = "rag_config"

_log = logging.getLogger(__name__)


class ChromaRagConfig(BaseModel):
    """The archives of one agent; ``language`` of the headings of an answer, None: as the environment says."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    archives: Archives = Field(default_factory=list)
    language: Language | None = None


def extract_rag_config(
    config: Mapping[str, Any] | None, assistant: Mapping[str, Any] | None = None
) -> ChromaRagConfig | None:
    """What ``config``, that of a thread or run, says of archives; None where there is nothing.

    ``assistant``: the configuration of the assistant, for what the thread leaves open. The thread's archives replace
    the assistant's whole, an empty list too; LangChain's ``merge_configs([assistant, thread])`` comes to the same.
    What a platform says besides is left out, and logged. Raises `InvalidConfigError` with everything that is wrong.
    """
    for source in (config, assistant):
        found = _mapping(_mapping(source, "a configuration").get("configurable"), "configurable").get(KEY)
        if found is not None:
            return _parsed(found)
    return None


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    """The value itself, or an empty mapping for None. Told by its type alone: it may hold passwords."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidConfigError(
            f"{what} must be a mapping, got one of type {type(value).__name__!r}; "
            f"write {{'configurable': {{{KEY!r}: {{'archives': [...]}}}}}}"
        )
    return value or {}


def _parsed(found: Any) -> ChromaRagConfig:
    if not isinstance(found, Mapping | ChromaRagConfig):
        raise InvalidConfigError(f"{KEY} is a {type(found).__name__}; write {{'archives': [...]}}")
    if isinstance(found, ChromaRagConfig):
        return found
    known = {name: value for name, value in found.items() if name in ChromaRagConfig.model_fields}
    if "archives" not in known:  # else a misspelt name would be an agent without archives
        known = dict(found)
    elif len(known) < len(found):
        others = shown(sorted(map(str, found.keys() - known.keys())))
        _log.warning("%s: left out what is not known, %s; there are %s", KEY, others, ", ".join(known))
    return parse_config(ChromaRagConfig, known, KEY)
