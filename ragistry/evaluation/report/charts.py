"""The plots of a report: shapes with their positions, which ``templates/charts.html`` writes as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragistry.evaluation.report.scales import MINUS, Scale, beside, linear, logarithmic
from ragistry.utils.wording import agreeing, numbered

COLOURS = 8
"""Colours of the style sheet; with more techniques they repeat."""
CHARACTER = 6.4
"""About the width of a character of a label."""
ROW = 26
WIDE = 920
NARROW, BROAD = 300, 465
LABELS = 250.0
"""The widest column of labels beside a plot."""


class Shape:
    """An SVG element: attributes, text, a tooltip, and the shapes inside."""

    def __init__(self, tag: str, text: str = "", inside: Sequence[Shape] = (), tip: str = "", **attributes: object):
        self.tag, self.text, self.inside, self.tip = tag, text, inside, tip
        self.attributes = {key.rstrip("_").replace("_", "-"): _short(value) for key, value in attributes.items()}


class Chart(NamedTuple):
    """A plot; ``legend``: names and their colours."""

    title: str
    width: float
    height: float
    shapes: list[Shape]
    legend: Sequence[tuple[str, str]] = ()


class Spread(NamedTuple):
    """A value with its interval, its colour, and whether its dot is filled."""

    label: str
    value: float
    low: float
    high: float
    colour: int
    full: bool = True


class Point(NamedTuple):
    """A technique in the plane of time and quality."""

    label: str
    p50: float
    p95: float
    value: float
    low: float
    high: float
    colour: int


def spreads(rows: Sequence[Spread], title: str, *, zero: bool = False) -> Chart:
    """Dots with intervals, one row each; ``zero``: with a line at 0."""
    labels = [row.label for row in rows]
    left, width, bottom = label_width(labels), panel_width(labels), ROW * len(rows) + 8
    x = linear([v for row in rows for v in (row.low, row.high)], left, width - 14, zero=zero)
    shapes = _columns(x, 4, bottom)
    if zero:
        shapes.append(_line(x(0), 4, x(0), bottom, "zero"))
    for number, row in enumerate(rows):
        y = ROW * number + ROW / 2 + 4
        ends = [_line(x(end), y - 4, x(end), y + 4) for end in (row.low, row.high)]
        dot = Shape("circle", cx=x(row.value), cy=y, r=4.5, class_="dot" if row.full else "dot hollow")
        tip = f"{row.label}: {row.value:.4f} [{row.low:.4f}, {row.high:.4f}]"
        inside = [_line(x(row.low), y, x(row.high), y), *ends, dot]
        shapes += [_label(row.label, left - 10, y), Shape("g", inside=inside, tip=tip, class_=colour(row.colour))]
    return Chart(title, width, bottom + 24, shapes)


def quality_and_time(points: Sequence[Point], measure: str, unit: str, *, height: int = 320) -> Chart:
    """Quality against the time of a query: a dot at the median, a dashed line to the 95th percentile, the interval."""
    left, right, floor = 60, WIDE - 20, height - 44
    x = logarithmic([max(v, 0.001) for point in points for v in (point.p50, point.p95)], left, right)
    y = linear([v for point in points for v in (point.low, point.high)], floor, 12)
    shapes = [*_columns(x, 12, floor), *_lines(y, left, right)]
    dots = [(x(max(point.p50, 0.001)), y(point.value)) for point in points]
    places = beside([point.label for point in points], dots, WIDE, floor)
    for point, (at, up), name in zip(points, dots, places, strict=True):
        far = x(max(point.p95, 0.001))
        inside = [
            _line(at, y(point.low), at, y(point.high)),
            _line(at, up, far, up, "range dashed"),
            _line(far, up - 4, far, up + 4),
            Shape("circle", cx=at, cy=up, r=5, class_="dot"),
            Shape("text", point.label, x=name.x, y=name.y, text_anchor=name.anchor, class_="name"),
        ]
        tip = f"{point.label}: {measure} {point.value:.4f}, p50 {point.p50:.1f} ms, p95 {point.p95:.1f} ms"
        shapes.append(Shape("g", inside=inside, tip=tip, class_=colour(point.colour)))
    turned = f"rotate(-90 14 {floor / 2:.0f})"
    shapes += [
        _axis(f"{unit} per query: median, dashed to the 95th percentile", (left + WIDE) / 2, height - 6),
        Shape("text", measure, x=14, y=floor / 2, class_="axis", text_anchor="middle", transform=turned),
    ]
    return Chart(f"{measure} against {unit} per query", WIDE, height, shapes)


def query_differences(
    values: Sequence[tuple[str, float]], a: str, b: str, colours: tuple[int, int], limit: float, *, height: int = 190
) -> Chart:
    """The difference a minus b of every query, from the largest to the smallest, a bar each; axis to ±``limit``."""
    ordered = sorted(values, key=lambda pair: (-pair[1], pair[0]))
    y = Scale(-limit, limit, height - 24, 20)
    step = (WIDE - 70) / max(1, len(ordered))
    bars = [
        Shape(
            "rect", tip=f"{query}: {value:+.4f}", x=50 + step * number, width=max(0.4, step * 0.9),
            y=min(y(0), y(value)), height=abs(y(value) - y(0)), class_=colour(colours[value < 0]),
        )
        for number, (query, value) in enumerate(ordered)
        if value
    ]  # fmt: skip
    wins, losses = sum(value > 0 for _, value in ordered), sum(value < 0 for _, value in ordered)
    right = WIDE - 20
    shapes = [
        *_lines(y, 50, right),
        _line(50, y(0), right, y(0), "zero"),
        *bars,
        Shape("text", f"{a} better: {wins}", x=54, y=14, class_=f"name {colour(colours[0])}"),
        _axis(f"equal: {len(ordered) - wins - losses}", WIDE / 2, 14),
        Shape("text", f"{b} better: {losses}", x=right, y=14, class_=f"name {colour(colours[1])}", text_anchor="end"),
        _axis(f"{numbered(len(ordered), '[query|queries]')}, by difference", WIDE / 2, height - 6),
    ]
    return Chart(f"Differences of single queries, {a} minus {b}", WIDE, height, shapes)


def bars(
    rows: Sequence[tuple[str, Sequence[float]]],
    parts: Sequence[str],
    title: str,
    unit: str,
    *,
    colours: Sequence[int] = range(COLOURS),
) -> Chart:
    """Stacked bars, one row each, with a legend. ``unit``: of the values, in the form that `agreeing` takes."""
    left, bottom = label_width([label for label, _ in rows]), ROW * len(rows) + 8
    x = Scale(0, max((sum(values) for _, values in rows), default=0.0) * 1.02 or 1.0, left, WIDE - 14)
    own = [colour(colours[at % len(colours)]) for at in range(len(parts))]
    shapes = _columns(x, 4, bottom)
    for number, (label, values) in enumerate(rows):
        y, begun = ROW * number + 8, 0.0
        shapes.append(_label(label, left - 10, y + (ROW - 8) / 2))
        for name, value, css in zip(parts, values, own, strict=True):
            amount = f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"
            tip = f"{label}, {name}: {amount} {agreeing(value, unit)}"
            width = max(0.0, x(begun + value) - x(begun))
            shapes.append(Shape("rect", tip=tip, x=x(begun), y=y, width=width, height=ROW - 8, class_=css))
            begun += value
    return Chart(title, WIDE, bottom + 24, shapes, list(zip(parts, own, strict=True)))


def colour(number: int) -> str:
    """The class of a colour."""
    return f"c{number % COLOURS}"


def label_width(labels: Sequence[str]) -> float:
    """Room for labels on the left."""
    return min(LABELS, max((len(label) for label in labels), default=0) * CHARACTER + 18)


def panel_width(labels: Sequence[str]) -> int:
    """Three panels beside each other, or two if labels are long."""
    return NARROW if label_width(labels) < NARROW * 0.45 else BROAD


def _line(x1: float, y1: float, x2: float, y2: float, css: str = "range") -> Shape:
    return Shape("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=css)


def _label(text: str, x: float, y: float) -> Shape:
    """A name beside a row. A long one is shortened in the middle; its tooltip and the table below have all of it."""
    most = int(LABELS / CHARACTER) - 3
    half = most // 2
    short = text if len(text) <= most else f"{text[: half - 1]}…{text[len(text) - half :]}"
    return Shape("text", short, tip=text, x=x, y=y + 4, text_anchor="end", class_="label")


def _axis(text: str, x: float, y: float, anchor: str = "middle") -> Shape:
    return Shape("text", text, x=x, y=y, text_anchor=anchor, class_="axis")


def _columns(x: Scale, top: float, bottom: float) -> list[Shape]:
    lines = [_line(x(mark), top, x(mark), bottom, "grid") for mark in x.marks()]
    return lines + [_axis(_number(mark), x(mark), bottom + 15) for mark in x.marks()]


def _lines(y: Scale, left: float, right: float) -> list[Shape]:
    lines = [_line(left, y(mark), right, y(mark), "grid") for mark in y.marks()]
    return lines + [_axis(_number(mark), left - 6, y(mark) + 4, "end") for mark in y.marks()]


def _number(value: float) -> str:
    return f"{value:.10g}".replace("-", MINUS)


def _short(value: object) -> str:
    """Two decimals: a screen shows no more, and equal figures give equal bytes."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
