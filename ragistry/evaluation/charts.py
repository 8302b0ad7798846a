"""The plots of a report as inline SVG: no script, no network, sharp at any size, in the page's colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragistry.evaluation.axes import Scale, linear, logarithmic, shown
from ragistry.evaluation.html import Html, tag
from ragistry.evaluation.labels import beside
from ragistry.utils.wording import agreeing, numbered

COLOURS = 8
"""Colours that the style sheet has; more techniques than that begin anew."""
CHARACTER = 6.4
"""About the width of a character of a label."""
ROW = 26
NARROW, BROAD = 300, 465
LABELS = 250.0
"""The widest that the labels beside a plot get."""


class Spread(NamedTuple):
    """A row of a plot: a value in its interval, its colour, and whether it is drawn full."""

    label: str
    value: float
    low: float
    high: float
    colour: int
    full: bool = True


def spreads(rows: Sequence[Spread], title: str, *, zero: bool = False) -> Html:
    """Dots in their intervals, one row each; ``zero``: with a line at 0."""
    left = label_width([row.label for row in rows])
    width = panel_width([row.label for row in rows])
    bottom = ROW * len(rows) + 8
    x = linear([v for row in rows for v in (row.low, row.high)], left, width - 14, zero=zero)
    drawn = [_grid(x, 4, bottom)]
    if zero:
        drawn.append(tag("line", x1=x(0), x2=x(0), y1=4, y2=bottom, class_="zero"))
    for number, row in enumerate(rows):
        y = ROW * number + ROW / 2 + 4
        drawn += [
            _label(row.label, left - 10, y),
            tag(
                "g",
                tag("title", f"{row.label}: {row.value:.4f} [{row.low:.4f}, {row.high:.4f}]"),
                tag("line", x1=x(row.low), x2=x(row.high), y1=y, y2=y, class_="range"),
                tag("line", x1=x(row.low), x2=x(row.low), y1=y - 4, y2=y + 4, class_="range"),
                tag("line", x1=x(row.high), x2=x(row.high), y1=y - 4, y2=y + 4, class_="range"),
                tag("circle", cx=x(row.value), cy=y, r=4.5, class_="dot" if row.full else "dot hollow"),
                class_=colour(row.colour),
            ),
        ]
    return _figure(title, width, bottom + 24, drawn)


class Point(NamedTuple):
    """A technique in the plane of time and quality."""

    label: str
    p50: float
    p95: float
    value: float
    low: float
    high: float
    colour: int


def quality_and_latency(points: Sequence[Point], measure: str, *, width: int = 920, height: int = 320) -> Html:
    """Quality against milliseconds a query: a dot at the median, a line to the 95th percentile, and the interval."""
    x = logarithmic([max(v, 0.001) for point in points for v in (point.p50, point.p95)], 60, width - 20)
    y = linear([v for point in points for v in (point.low, point.high)], height - 44, 12)
    drawn = [_grid(x, 12, height - 44), _rows(y, 60, width - 20)]
    dots = [(x(max(point.p50, 0.001)), y(point.value)) for point in points]
    places = beside([point.label for point in points], dots, width, height - 44)
    for point, (at, up), name in zip(points, dots, places, strict=True):
        far = x(max(point.p95, 0.001))
        said = f"{point.label}: {measure} {point.value:.4f}, p50 {point.p50:.1f} ms, p95 {point.p95:.1f} ms"
        drawn.append(
            tag(
                "g",
                tag("title", said),
                tag("line", x1=at, x2=at, y1=y(point.low), y2=y(point.high), class_="range"),
                tag("line", x1=at, x2=far, y1=up, y2=up, class_="range dashed"),
                tag("line", x1=far, x2=far, y1=up - 4, y2=up + 4, class_="range"),
                tag("circle", cx=at, cy=up, r=5, class_="dot"),
                tag("text", point.label, x=name.x, y=name.y, text_anchor=name.anchor, class_="name"),
                class_=colour(point.colour),
            )
        )
    drawn += [
        tag("text", "milliseconds a query: median, dashed to the 95th percentile", x=(60 + width) / 2, y=height - 6,
            class_="axis", text_anchor="middle"),
        tag("text", measure, x=14, y=(height - 44) / 2, class_="axis", text_anchor="middle",
            transform=f"rotate(-90 14 {(height - 44) / 2:.0f})"),
    ]  # fmt: skip
    return _figure(f"{measure} against latency", width, height, drawn)


def query_differences(
    values: Sequence[tuple[str, float]],
    a: str,
    b: str,
    colours: tuple[int, int],
    *,
    width: int = 920,
    height: int = 190,
) -> Html:
    """The difference of every query, a minus b, from the largest to the smallest, one bar each."""
    ordered = sorted(values, key=lambda pair: (-pair[1], pair[0]))
    reach = max((abs(value) for _, value in ordered), default=0.0) or 1.0
    y = Scale(-reach, reach, height - 24, 20)
    step = (width - 70) / max(1, len(ordered))
    bars = [
        tag(
            "rect",
            tag("title", f"{query}: {value:+.4f}"),
            x=50 + step * number,
            width=max(0.4, step * 0.9),
            y=min(y(0), y(value)),
            height=abs(y(value) - y(0)),
            class_=colour(colours[0] if value > 0 else colours[1]),
        )
        for number, (query, value) in enumerate(ordered)
        if value
    ]
    wins, losses = sum(value > 0 for _, value in ordered), sum(value < 0 for _, value in ordered)
    drawn = [
        _rows(y, 50, width - 20),
        tag("line", x1=50, x2=width - 20, y1=y(0), y2=y(0), class_="zero"),
        *bars,
        tag("text", f"{a} better: {wins}", x=54, y=14, class_=f"name {colour(colours[0])}"),
        tag("text", f"equal: {len(ordered) - wins - losses}", x=width / 2, y=14, class_="axis", text_anchor="middle"),
        tag("text", f"{b} better: {losses}", x=width - 20, y=14, class_=f"name {colour(colours[1])}",
            text_anchor="end"),
        tag("text", f"{numbered(len(ordered), '[query|queries]')}, by difference", x=width / 2, y=height - 6,
            class_="axis", text_anchor="middle"),
    ]  # fmt: skip
    return _figure(f"Differences of single queries, {a} minus {b}", width, height, drawn)


def bars(
    rows: Sequence[tuple[str, Sequence[float]]],
    parts: Sequence[str],
    title: str,
    unit: str,
    *,
    colours: Sequence[int] = range(COLOURS),
    width: int = 920,
) -> Html:
    """Bars of stacked parts, one row each, every part in its colour; the legend below says which is which.

    ``unit``: what the values are, also as `agreeing` takes it.
    """
    left = label_width([label for label, _ in rows])
    bottom = ROW * len(rows) + 8
    x = Scale(0, max((sum(values) for _, values in rows), default=0.0) * 1.02 or 1.0, left, width - 14)
    drawn = [_grid(x, 4, bottom)]
    for number, (label, values) in enumerate(rows):
        y, begun = ROW * number + 8, 0.0
        drawn.append(_label(label, left - 10, y + (ROW - 8) / 2))
        for part, (name, value) in enumerate(zip(parts, values, strict=True)):
            drawn.append(
                tag(
                    "rect",
                    tag("title", f"{label}, {name}: {_amount(value)} {agreeing(value, unit)}"),
                    x=x(begun),
                    y=y,
                    width=max(0.0, x(begun + value) - x(begun)),
                    height=ROW - 8,
                    class_=colour(colours[part % len(colours)]),
                )
            )
            begun += value
    return tag("div", _figure(title, width, bottom + 24, drawn), legend(parts, colours))


def _amount(value: float) -> str:
    """Four digits; of a whole number all of them."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


def legend(names: Sequence[str], colours: Sequence[int]) -> Html:
    """Which colour is which name."""
    items = [tag("span", tag("i", class_=colour(colours[at % len(colours)])), name) for at, name in enumerate(names)]
    return tag("p", items, class_="legend")


def colour(number: int) -> str:
    """The class of a colour."""
    return f"c{number % COLOURS}"


def label_width(labels: Sequence[str]) -> float:
    """Room for labels at the left."""
    return min(LABELS, max((len(label) for label in labels), default=0) * CHARACTER + 18)


def panel_width(labels: Sequence[str]) -> int:
    """Three panels beside each other, or two where labels are long."""
    return NARROW if label_width(labels) < NARROW * 0.45 else BROAD


def _label(text: str, x: float, y: float) -> Html:
    most = int(LABELS / CHARACTER) - 2
    short = text if len(text) <= most else text[: most - 1] + "…"
    return tag("text", tag("title", text), short, x=x, y=y + 4, text_anchor="end", class_="label")


def _grid(x: Scale, top: float, bottom: float) -> Html:
    marks = [
        (
            tag("line", x1=x(mark), x2=x(mark), y1=top, y2=bottom, class_="grid"),
            tag("text", shown(mark), x=x(mark), y=bottom + 15, text_anchor="middle", class_="axis"),
        )
        for mark in x.marks()
    ]
    return tag("g", marks)


def _rows(y: Scale, left: float, right: float) -> Html:
    marks = [
        (
            tag("line", x1=left, x2=right, y1=y(mark), y2=y(mark), class_="grid"),
            tag("text", shown(mark), x=left - 6, y=y(mark) + 4, text_anchor="end", class_="axis"),
        )
        for mark in y.marks()
    ]
    return tag("g", marks)


def _figure(title: str, width: float, height: float, drawn: Sequence[Html]) -> Html:
    return tag(
        "svg",
        tag("title", title),
        drawn,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )
