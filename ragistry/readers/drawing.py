"""Read DrawingML: paragraphs, formulas, charts and diagrams of slides and sheets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from lxml import etree

from ragistry.readers.blocks import Block, Place
from ragistry.readers.formulas import office_formula
from ragistry.readers.number_formats import format_number
from ragistry.readers.office_package import (
    Package,
    attribute,
    clean,
    local,
    markdown_cell,
    markdown_table,
    picture_text,
    plain_markdown,
    whole_number,
)
from ragistry.readers.word_processing import link

COUNTERS = ("slidenum", "datetime")
"""Fields whose text changes by itself."""
SERIES = ("{*}ser", "{*}series")
MOST_POINTS = 20_000
"""Points of a chart that are read."""
_DEEPEST = 100
_WITHIN_LINK = re.compile(r"\]\(([^()]*)\)\[(?=[^\]]*\]\(\1\))")  # between two runs of one link


def children(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the child elements; of alternatives those of the first choice, otherwise of the fallback."""
    for child in element:
        if local(child) != "AlternateContent":
            yield child
            continue
        chosen = child.find("{*}Choice")
        if chosen is None:
            chosen = child.find("{*}Fallback")
        if chosen is not None:
            yield from children(chosen)


def paragraph_text(paragraph: etree._Element, *, counters: bool = True) -> str:
    """Return the text of an ``a:p`` with its line breaks. ``counters``: with page numbers and dates of today."""
    parts: list[str] = []
    for child in children(paragraph):
        match local(child):
            case "r" | "fld":
                if counters or not (child.get("type") or "").startswith(COUNTERS):
                    text = "".join(one.text or "" for one in child.iterfind("{*}t"))
                    parts.append(link(text, _address(child.find("{*}rPr"))))
            case "br":
                parts.append("\n")
            case "m" | "oMathPara" | "oMath":
                parts.append(office_formula(child))
    return _WITHIN_LINK.sub("", clean("".join(parts)).replace("\v", "\n"))


def shape_text(properties: etree._Element) -> str:
    """Return the title and description of a shape, and the address that a click on it opens."""
    text = picture_text(properties.get("title"), properties.get("descr"))
    url = _address(properties)
    return plain_markdown(link(f"[Picture: {text}]" if text else "Link" * bool(url), url))


def _address(properties: etree._Element | None) -> str:
    click = properties.find("{*}hlinkClick") if properties is not None else None
    return "" if click is None else click.get("address", "")


def body_text(body: etree._Element | None, between: str = "\n") -> str:
    """Return the paragraphs of a text body that have text."""
    if body is None:
        return ""
    texts = (paragraph_text(one).strip() for one in body.iter("{*}p"))
    return between.join(text for text in texts if text)


def chart_titles(root: etree._Element) -> tuple[str, list[str], list[str]]:
    """Return the title of a chart, the titles of its axes, and the names of its series."""
    title, axes = "", []
    for found in root.iter("{*}title"):
        parent = found.getparent()
        text = _rich_text(found)
        if not text or parent is None:
            continue
        if local(parent) in ("chart", "chartSpace") and not title:
            title = text
        else:
            axes.append(text)
    return title, axes, [*filter(None, map(_series_name, root.iter(*SERIES)))]


def chart_lines(root: etree._Element) -> str:
    """Return the titles and names of series of a chart as a paragraph."""
    return chart_line(*chart_titles(root), _labels(root))


def chart_line(title: str, axes: Sequence[str], series: Sequence[str], labels: Sequence[str] = ()) -> str:
    """Return the titles of a chart and of its axes and the names of its series as a paragraph; empty without any."""
    parts = [f"Chart: {title}" if title else "Chart"]
    parts += [f"Axes: {', '.join(axes)}"] * bool(axes) + [f"Series: {', '.join(series)}"] * bool(series)
    parts += labels
    return plain_markdown(". ".join(part.rstrip(".") for part in parts)) if len(parts) > 1 or title else ""


def chart_markdown(root: etree._Element) -> str:
    """Return a chart as its titles and a table of categories and values for the series that share categories."""
    title, axes, _ = chart_titles(root)
    head = chart_line(title, axes, (), _labels(root))
    tables: dict[tuple[tuple[int, str], ...], list[tuple[str, dict[int, str]]]] = {}
    for series in root.iter(*SERIES):
        categories = _points(series, ("cat", "xVal"))
        columns = [(_series_name(series), _points(series, ("val", "yVal")))]
        if sizes := _points(series, ("bubbleSize",)):
            columns.append((f"{_series_name(series)} (size)", sizes))
        tables.setdefault(tuple(categories.items()), []).extend(columns)
    parts = []
    for shared, columns in tables.items():
        names = dict(shared)
        rows = sorted(names.keys() | {index for _, points in columns for index in points})
        if rows or any(name for name, _ in columns):
            table = [["", *(markdown_cell(name) for name, _ in columns)]]
            table += [
                [markdown_cell(names.get(row, "")), *(points.get(row, "") for _, points in columns)] for row in rows
            ]
            parts.append(markdown_table(table))
    return "\n\n".join([head or "Chart", *parts]) if parts else head


def _rich_text(title: etree._Element) -> str:
    text = body_text(title, " ")
    if not text:
        text = " ".join(value.text or "" for value in title.iter("{*}v"))
    return " ".join(clean(text).split())


def _series_name(series: etree._Element) -> str:
    name = series.find("{*}tx")
    return "" if name is None else " ".join(clean(" ".join(one.text or "" for one in name.iter("{*}v"))).split())


def _labels(root: etree._Element) -> list[str]:
    """Return the texts that someone wrote at points of a chart, and the names of trend lines."""
    texts = [body_text(one.find("{*}tx"), " ") for one in root.iter("{*}dLbl")]
    texts += [clean(one.text or "") for one in root.iterfind(".//{*}trendline/{*}name")]
    texts = [" ".join(text.split()) for text in texts]
    return [f"Labels: {', '.join(filter(None, texts))}"] * any(texts)


def _points(series: etree._Element, names: tuple[str, ...]) -> dict[int, str]:
    """Return the points of a series by their numbers, formatted; those of several levels joined."""
    found = next((one for name in names if (one := series.find(f"{{*}}{name}")) is not None), None)
    if found is None:
        return _extended_points(series, names)
    points: dict[int, str] = {}
    levels = list(found.iter("{*}lvl"))
    for level in reversed(levels) if levels else [found]:
        code = next((one.text for one in level.iter("{*}formatCode")), None) or "General"
        spread = ""
        own = {whole_number(point.get("idx"), 0): point for point in level.iter("{*}pt")}
        for index in sorted(points.keys() | own.keys())[:MOST_POINTS]:
            if index in own:
                value = clean(next((one.text or "" for one in own[index].iter("{*}v")), ""))
                spread = _number(value, attribute(own[index], "formatCode") or code)
            points[index] = f"{points.get(index, '')} {spread}".strip()
    return points


def _extended_points(series: etree._Element, names: tuple[str, ...]) -> dict[int, str]:
    """Return the points of a waterfall, treemap or another extended chart, which are outside of the series."""
    link = series.find("{*}dataId")
    every = series.getroottree().getroot().iter("{*}data")
    data = next((one for one in every if link is None or one.get("id") == link.get("val")), None)
    points: dict[int, str] = {}
    for dimension in data.iter("{*}strDim" if names[0] == "cat" else "{*}numDim") if data is not None else ():
        for level in reversed(dimension.findall("{*}lvl")):
            code = level.get("formatCode") or "General"
            for point in level.iterfind("{*}pt"):
                text = _number(clean(point.text or ""), code)
                index = whole_number(point.get("idx"), 0)
                points[index] = f"{points.get(index, '')} {text}".strip()
        break
    return points if names[0] in ("cat", "val") else {}


def _number(value: str, code: str) -> str:
    with suppress(ValueError):
        value = value if code == "General" else format_number(float(value), code)
    return markdown_cell(value)


def diagram_items(root: etree._Element) -> list[tuple[int, str]]:
    """Return the texts of a SmartArt diagram with their depth."""
    points = {one.get("modelId") or "": one for one in root.iter("{*}pt")}
    below: dict[str, list[tuple[int, str]]] = {}
    for one in root.iter("{*}cxn"):
        if one.get("type", "parOf") == "parOf":
            item = whole_number(one.get("srcOrd"), 0), one.get("destId") or ""
            below.setdefault(one.get("srcId") or "", []).append(item)
    items: list[tuple[int, str]] = []
    seen: set[str] = set()
    starts = [key for key, one in points.items() if one.get("type") == "doc"]
    stack = [(0, key) for key in reversed([*starts, *(key for key in points if key not in starts)])]
    while stack:
        depth, key = stack.pop()
        if key in seen or key not in points:
            continue
        seen.add(key)
        text = " ".join(body_text(points[key].find("{*}t"), " ").split())
        if text:
            items.append((depth, text))
        deeper = min(depth + bool(text), _DEEPEST)
        stack += [(deeper, child) for _, child in sorted(below.get(key, ()), reverse=True)]
    return items


def chart_blocks(
    package: Package, name: str, place: Place, write: Callable[[etree._Element], str] = chart_markdown
) -> list[Block]:
    """Return a chart, and the texts of the drawings in it, in which people write next to the data."""
    root = package.xml(name) if name else None
    if root is None:
        return []
    drawings = map(package.xml, package.related(name, "chartUserShapes"))
    texts = [write(root), *(plain_markdown(body_text(one, "\n\n")) for one in drawings)]
    return [Block(text, replace(place, kind="chart")) for text in texts if text]


def diagram_blocks(package: Package, name: str, place: Place) -> list[Block]:
    """Return a SmartArt diagram as a nested list."""
    root = package.xml(name) if name else None
    items = [] if root is None else diagram_items(root)
    text = "\n".join(f"{'    ' * depth}- {plain_markdown(text)}" for depth, text in items)
    return [Block(text, place)] if text else []
