"""Web pages as sources."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from ragistry.errors import SourceError
from ragistry.library.report import Failure
from ragistry.library.source import SourceBytes
from ragistry.utils.extracted import ExtractLimits
from ragistry.utils.urls import url_name


def fetched(
    urls: Sequence[str], limits: ExtractLimits, *, allow_private: bool = False
) -> tuple[list[SourceBytes], list[Failure]]:
    """The pages at URLs, named after them, and those that cannot be had. ``allow_private``: see `Fetcher`."""
    if not urls:
        return [], []
    from ragistry.fetch import Fetcher

    pages, failed = [], []
    with closing(Fetcher(limits, allow_private=allow_private)) as fetcher:
        for url in dict.fromkeys(url.partition("#")[0] for url in urls):
            try:
                page = fetcher.fetch(url)
            except SourceError as error:
                failed.append(Failure(url, error))
            else:
                pages.append(SourceBytes(page.data, url_name(url, page.suffix), url))
    return pages, failed
