"""The part of a page that explains: the queries on which two techniques differ most, with both rankings."""

from __future__ import annotations

import json

from ragistry.evaluation.diagnosis import PairDiagnosis, QueryDifference, Row, Side
from ragistry.evaluation.html import Html, joined, tag
from ragistry.evaluation.result import Comparison
from ragistry.evaluation.sheets import signed

PAIRS_EXPLAINED = 6
"""Pairs that are explained; of more the first. JSON has all."""


def diagnosis(comparison: Comparison) -> Html:
    """The section, nothing where no two techniques could be compared."""
    pairs = [_pair(pair) for pair in comparison.diagnosis[:PAIRS_EXPLAINED] if pair.queries]
    lost = _lost(comparison)
    if not pairs and not lost:
        return Html()
    return joined([tag("h2", "Where techniques differ, and why"), pairs, lost])


def _pair(pair: PairDiagnosis) -> Html:
    return joined([tag("h3", f"{pair.a} against {pair.b}, {pair.measure}"), [_query(query) for query in pair.queries]])


def _query(query: QueryDifference) -> Html:
    summary = tag("summary", tag("span", signed(query.difference), class_="by"), query.text)
    return tag(
        "details",
        summary,
        tag("p", f"Query {query.query}: {query.why}.", class_="note"),
        tag("div", _side(query.a), _side(query.b), class_="sides"),
    )


def _side(side: Side) -> Html:
    below = [row for row in side.relevant if row not in side.best]
    head = tag("tr", [tag("th", name) for name in ("rank", "document", "stage scores")])
    route = [
        tag("p", "Route: ", tag("code", json.dumps(step, ensure_ascii=False)), class_="note") for step in side.route
    ]
    return tag(
        "div",
        tag("p", tag("strong", side.technique), f" {side.value:.3f}"),
        tag("table", tag("thead", head), tag("tbody", [_row(row) for row in [*side.best, *below]])),
        route,
    )


def _row(row: Row) -> Html:
    scores = ", ".join(f"{stage} {value:.4g}" for stage, value in row.scores.items())
    name = joined([tag("code", row.document), f" {row.title}" if row.title else ""])
    relevant = (row.grade or 0) > 0
    return tag(
        "tr",
        tag("td", str(row.rank)),
        tag("td", name, tag("strong", f" relevant ({row.grade})") if relevant else ""),
        tag("td", scores),
        class_="relevant" if relevant else None,
    )


def _lost(comparison: Comparison) -> Html:
    parts = []
    for name, result in comparison.techniques.items():
        found = result.found
        for fate, count, said in (
            ("low", found.low, "retrieved, but ranked low"),
            ("never", found.never, "never retrieved"),
            ("routed_away", found.routed_away, "routed away"),
        ):
            items = [
                tag("li", "query ", tag("code", one.query), ": ", tag("code", one.document),
                    f" at rank {one.rank}" if one.rank else "")
                for one in found.examples.get(fate, [])
            ]  # fmt: skip
            if items:
                parts.append(tag("details", tag("summary", f"{name}: {count:,} {said}, for example"), tag("ul", items)))
    return joined([tag("h3", "Relevant documents that were not shown"), parts]) if parts else Html()
