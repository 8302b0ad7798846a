"""Explain differences: the queries with the largest ones, and where the relevant documents ended up.

All results are plain values, as in JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ragistry.evaluation.asking import QueryRanking
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.figures import RelevantFound

SHOWN = 5
"""Number of documents shown of each ranking."""
EXAMPLES = 5
"""Number of queries shown for each side of a pair, and of examples of each kind of failure."""


def relevant_found(
    rankings: Mapping[str, QueryRanking], dataset: Dataset, cutoff: int, depth: int, collections: Mapping[str, str]
) -> RelevantFound:
    """Count where the relevant documents of all queries ended up.

    Args:
        rankings: Query → ranking of one technique.
        dataset: The test set.
        cutoff: Number of results that count as shown.
        depth: Number of documents of a ranking.
        collections: Document → the collection that contains it.
    """
    counts, examples = Counter[str](), dict[str, list[dict[str, Any]]]()
    for query in dataset.judged:
        ranking = rankings[query]
        ranks = {id: rank for rank, (id, _) in enumerate(ranking.documents, 1)}
        for document in (id for id, grade in dataset.qrels[query].items() if grade > 0):
            rank, collection = ranks.get(document), collections.get(document)
            if rank is not None:
                status = "shown" if rank <= cutoff else "low"
            else:
                left_out = any(collection not in names for names in _chosen(ranking.route))
                status = "routed_away" if collection is not None and left_out else "never"
            counts[status] += 1
            if status != "shown" and len(examples.setdefault(status, [])) < EXAMPLES:
                examples[status].append({"query": query, "document": document, "rank": rank})
    shown, low, never, routed_away = (counts[status] for status in ("shown", "low", "never", "routed_away"))
    return RelevantFound(cutoff, depth, shown, low, never, routed_away, examples)


def diagnose(
    pairs: Iterable[tuple[str, str]],
    measure: str,
    values: Mapping[str, Mapping[str, float]],
    rankings: Mapping[str, Mapping[str, QueryRanking]],
    dataset: Dataset,
) -> list[dict[str, Any]]:
    """Find the queries of each pair with the largest differences: first those for a, then those for b.

    Args:
        pairs: Pairs of techniques.
        measure: The measure.
        values: Technique → query → value of the measure.
        rankings: Technique → query → ranking.
        dataset: The test set.

    Returns:
        Pairs ``{a, b, measure, queries}``. A query is ``{query, text, difference, a, b, why}``, a side of it
        ``{technique, value, best, relevant, route}``, where ``best`` and ``relevant`` list ``{rank, document, title,
        grade, scores}``. A grade of None means not judged; ``scores`` are by stage.
    """
    titles = {document.id: document.title or document.text[:80] for document in dataset.corpus}

    def side(name: str, query: str) -> dict[str, Any]:
        ranking, grades = rankings[name][query], dataset.qrels[query]
        rows = [
            {"rank": rank, "document": id, "title": titles.get(id, ""), "grade": grades.get(id), "scores": scores}
            for rank, (id, _) in enumerate(ranking.documents, 1)
            for scores in [ranking.scores.get(id, {})]
        ]
        relevant = [row for row in rows if grades.get(str(row["document"]), 0) > 0]
        value = values[name][query]
        return {"technique": name, "value": value, "best": rows[:SHOWN], "relevant": relevant, "route": ranking.route}

    def differing(query: str, a: str, b: str) -> dict[str, Any]:
        one, other = side(a, query), side(b, query)
        row = {"query": query, "text": dataset.queries[query], "difference": one["value"] - other["value"]}
        return {**row, "a": one, "b": other, "why": f"{_why(one)}; {_why(other)}"}

    found = []
    for a, b in pairs:
        differences = {query: values[a][query] - values[b][query] for query in values[a]}
        ordered = sorted(differences, key=lambda query: (-abs(differences[query]), query))
        queries = [
            *[query for query in ordered if differences[query] > 0][:EXAMPLES],
            *[query for query in ordered if differences[query] < 0][:EXAMPLES],
        ]
        found.append({"a": a, "b": b, "measure": measure, "queries": [differing(query, a, b) for query in queries]})
    return found


def _why(side: Mapping[str, Any]) -> str:
    """Describe the ranks of the relevant documents, the stages that scored them, and the collections searched."""
    text = f"{side['technique']} did not retrieve any relevant document"
    if side["relevant"]:
        best, more = side["relevant"][0], len(side["relevant"]) - 1
        scores = ", ".join(f"{stage} {value:.3g}" for stage, value in best["scores"].items())
        text = f"{side['technique']} has {best['document']} at rank {best['rank']}"
        text += (f" ({scores})" if scores else "") + (f" and {more} more" if more else "")
    searched = ", ".join(name for chosen in _chosen(side["route"]) for name in chosen)
    return text + (f", searching {searched}" if searched else "")


def _chosen(route: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the collections that each step of a route chose."""
    return [list(map(str, step["chosen"])) for step in route if isinstance(step.get("chosen"), list)]
