"""Filters of the search page: searches are limited to sources with the chosen values of metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragistry.errors import ConfigError
from ragistry.types import SourceInfo, Where
from ragistry.utils.metadata import listed_metadata, shown_metadata

MOST_VALUES = 50
"""Maximum number of values of a key to offer; a key with more is not offered."""
MOST_SHOWN = 8
LONGEST = 60


def offered_filters(sources: Iterable[SourceInfo]) -> dict[str, str]:
    """Return the filters that suit some sources, with their labels: ``client: acme``."""
    found: dict[str, dict[str, str]] = {}
    for info in sources:
        for key, value in listed_metadata(info.metadata, info.set_keys).items():
            for one in value if isinstance(value, list) else [value]:
                name = json.dumps([key, one, isinstance(value, list)], ensure_ascii=False)
                found.setdefault(key, {})[name] = shown_metadata({key: one})[: LONGEST + len(key)]
    offered = {key: names for key, names in found.items() if len(names) <= MOST_VALUES}
    labels = [item for _, names in sorted(offered.items()) for item in sorted(names.items(), key=lambda item: item[1])]
    return dict(labels)


def filters_where(filters: Sequence[str]) -> Where | None:
    """Return the condition of chosen filters: one of the values of each key; None without filters.

    Raises:
        ConfigError: A filter is not one that `offered_filters` returns.
    """
    comparisons: dict[str, list[Where]] = {}
    for name in filters:
        try:
            key, value, in_list = json.loads(name)
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigError(f"{name!r:.200} is not a filter; choose one of the list") from error
        comparisons.setdefault(str(key), []).append({str(key): {"$contains" if in_list is True else "$eq": value}})
    return {"$and": [{"$or": one_of} for one_of in comparisons.values()]} if comparisons else None


def shown_values(metadata: Mapping[str, Any]) -> list[str]:
    """Return the metadata of a passage that are shown with it, one text for each key."""
    texts = [shown_metadata({key: value}) for key, value in listed_metadata(metadata).items()]
    short = [text if len(text) <= LONGEST else f"{text[:LONGEST]}…" for text in texts[:MOST_SHOWN]]
    return [*short, f"{len(texts) - MOST_SHOWN} more"] if len(texts) > MOST_SHOWN else short
