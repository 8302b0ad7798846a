"""Group the sections of a Markdown text into regions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ragistry.utils.markdown import Outline, Section
from ragistry.utils.spans import Region


def regions(sketch: Outline, size: int) -> Iterator[Region]:
    """The regions of a Markdown text, which chunks of ``size`` characters do not cross.

    Each is a section. A section shorter than a quarter of ``size`` also takes the following ones of its level or
    deeper, as long as all fit in one chunk. Headings without text join the next section; those at the end of a text
    join the previous one if it fits.
    """
    fences = sketch.fences
    for section in _with_neighbours(_with_bare_headings(sketch.sections), size):
        start, stop, body = section[:3]
        blocks = fences[bisect_left(fences, (start,)) : bisect_left(fences, (stop,))]
        yield Region(start, stop, body, blocks)


def _with_bare_headings(sections: Iterable[Section]) -> Iterator[Section]:
    above: Section | None = None
    for section in sections:
        whole = section._replace(start=above.start, level=min(above.level, section.level)) if above else section
        above = whole if whole.bare else None
        if not above:
            yield whole
    if above:
        yield above


def _with_neighbours(sections: Iterable[Section], size: int) -> Iterator[Section]:
    above: Section | None = None
    for section in sections:
        if above and _goes_with(above, section, size):
            above = above._replace(stop=section.stop)
            continue
        if above:
            yield above
        above = section
    if above:
        yield above


def _goes_with(above: Section, section: Section, size: int) -> bool:
    small = above.stop - above.start < size // 4 and section.level >= above.level
    return (small or section.bare) and section.stop - above.start <= size
