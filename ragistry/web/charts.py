"""The three plots of a report, as options of ECharts."""

from __future__ import annotations

from typing import Any

Report = dict[str, Any]
COLOURS = ["#4f7fe8", "#d9702f", "#2a9d62", "#a45cc0", "#a88a1c", "#1a9bab"]
INK = "#7b8496"
"""All of them readable on light and dark."""


def quality(report: Report) -> dict[str, Any]:
    """The mean of the main measure with its interval, a line a technique."""
    measure, techniques = report["measure"], report["techniques"]
    names = list(techniques)[::-1]
    figures = [techniques[name]["measures"][measure] for name in names]
    lines = [
        [{"coord": [figure["low"], place]}, {"coord": [figure["high"], place]}] for place, figure in enumerate(figures)
    ]
    return {
        **_titled(f"{measure}, mean and 95 % interval"),
        "xAxis": {**_axis(measure), **_around([figure[end] for figure in figures for end in ("low", "high")])},
        "yAxis": {"type": "category", "data": names, "axisLabel": {"color": INK}},
        "series": [
            {
                "type": "scatter",
                "symbolSize": 11,
                "itemStyle": {"color": COLOURS[0]},
                "data": [[round(figure["mean"], 4), place] for place, figure in enumerate(figures)],
                "markLine": {
                    "symbol": ["none", "none"],
                    "silent": True,
                    "label": {"show": False},
                    "lineStyle": {"color": COLOURS[0], "width": 3, "type": "solid", "opacity": 0.5},
                    "data": lines,
                },
            }
        ],
    }


def quality_and_time(report: Report) -> dict[str, Any]:
    """Each technique as a point: its quality against the median CPU time of a query."""
    measure, results = report["measure"], report["techniques"].values()
    return {
        **_titled(f"{measure} against CPU time (median)"),
        "xAxis": {**_axis("ms, logarithmic"), "type": "log"},
        "yAxis": {**_axis(measure, gap=44), **_around([result["measures"][measure]["mean"] for result in results])},
        "series": [
            {
                "type": "scatter",
                "name": name,
                "symbolSize": 14,
                "itemStyle": {"color": COLOURS[place % len(COLOURS)]},
                "label": {"show": True, "position": "top", "formatter": "{a}", "color": INK},
                "data": [[max(result["cpu_ms"]["p50"], 0.001), round(result["measures"][measure]["mean"], 4)]],
            }
            for place, (name, result) in enumerate(report["techniques"].items())
        ],
    }


def by_query(report: Report, pair: Report) -> tuple[dict[str, Any], list[str]]:
    """The differences of a pair from the largest to the smallest, and the query of each bar."""
    measure = pair["measure"]
    first = report["techniques"][pair["a"]]["per_query"][measure]
    second = report["techniques"][pair["b"]]["per_query"][measure]
    differences = {query: first[query] - second[query] for query in first if query in second}
    queries = sorted((query for query in differences if differences[query]), key=lambda query: -differences[query])
    bars = [
        {"value": round(differences[query], 4), "itemStyle": {"color": COLOURS[0 if differences[query] > 0 else 1]}}
        for query in queries
    ]
    title = f"{pair['a']} minus {pair['b']}: {len(queries)} of {len(differences)} queries differ; click a bar"
    return {
        **_titled(title),
        "tooltip": {"trigger": "item"},
        "xAxis": {"type": "category", "data": queries, "axisLabel": {"show": False}, "axisTick": {"show": False}},
        "yAxis": _axis(measure, gap=44),
        "series": [{"type": "bar", "data": bars, "barCategoryGap": "10%"}],
    }, queries


def _titled(text: str) -> dict[str, Any]:
    return {
        "title": {"text": text, "textStyle": {"color": INK, "fontSize": 13, "fontWeight": 600}},
        "grid": {"left": 40, "right": 32, "top": 44, "bottom": 36, "containLabel": True},
        "animation": False,
    }


def _around(values: list[float]) -> dict[str, float]:
    """The ends of an axis that shows every value with some room on both sides."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.02, 0.1 * (high - low))
    return {"min": round(low - room, 2), "max": round(high + room, 2)}


def _axis(name: str, *, gap: int = 28) -> dict[str, Any]:
    return {
        "type": "value",
        "name": name,
        "nameLocation": "middle",
        "nameGap": gap,
        "nameTextStyle": {"color": INK},
        "axisLabel": {"color": INK},
        "splitLine": {"lineStyle": {"color": INK, "opacity": 0.2}},
    }
