"""Why two techniques differ: the queries with the largest differences, and what became of the relevant documents.

All results are plain values, as in JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ragistry.evaluation.answers import Answer
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.result import RelevantFound

SHOWN = 5
"""Number of documents shown of each ranking."""
EXAMPLES = 5
"""Number of queries shown for each side of a pair, and of examples of each kind of failure."""


def relevant_found(
    answers: Mapping[str, Answer], dataset: Dataset, cutoff: int, depth: int, collections: Mapping[str, str]
) -> RelevantFound:
    """Count where each relevant document ended up. ``collections``: document → the collection that it is in."""
    counts, examples = Counter[str](), dict[str, list[dict[str, Any]]]()
    for query in dataset.judged:
        answer = answers[query]
        ranks = {id: rank for rank, (id, _) in enumerate(answer.ranking, 1)}
        for document in (id for id, grade in dataset.qrels[query].items() if grade > 0):
            rank, collection = ranks.get(document), collections.get(document)
            if rank is not None:
                status = "shown" if rank <= cutoff else "low"
            else:
                left_out = any(collection not in names for names in _chosen(answer.route))
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
    answers: Mapping[str, Mapping[str, Answer]],
    dataset: Dataset,
) -> list[dict[str, Any]]:
    """For each pair, the queries with the largest differences: first those for a, then those for b.

    ``values``: technique → query → value of the measure. A pair is ``{a, b, measure, queries}``; a query ``{query,
    text, difference, a, b, why}``; a side of it ``{technique, value, best, relevant, route}``, where ``best`` and
    ``relevant`` list ``{rank, document, title, grade, scores}``. A grade of None: not judged. ``scores``: by stage.
    """
    titles = {document.id: document.title or document.text[:80] for document in dataset.corpus}

    def side(name: str, query: str) -> dict[str, Any]:
        answer, grades = answers[name][query], dataset.qrels[query]
        rows = [
            {"rank": rank, "document": id, "title": titles.get(id, ""), "grade": grades.get(id), "scores": scores}
            for rank, (id, _) in enumerate(answer.ranking, 1)
            for scores in [answer.scores.get(id, {})]
        ]
        relevant = [row for row in rows if grades.get(str(row["document"]), 0) > 0]
        value = values[name][query]
        return {"technique": name, "value": value, "best": rows[:SHOWN], "relevant": relevant, "route": answer.route}

    def differing(query: str, a: str, b: str) -> dict[str, Any]:
        one, other = side(a, query), side(b, query)
        said = {"query": query, "text": dataset.queries[query], "difference": one["value"] - other["value"]}
        return {**said, "a": one, "b": other, "why": f"{_why(one)}; {_why(other)}"}

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
    """The ranks of the relevant documents, the stages that scored them, and the collections searched."""
    said = f"{side['technique']} did not retrieve any relevant document"
    if side["relevant"]:
        best, more = side["relevant"][0], len(side["relevant"]) - 1
        scores = ", ".join(f"{stage} {value:.3g}" for stage, value in best["scores"].items())
        said = f"{side['technique']} has {best['document']} at rank {best['rank']}"
        said += (f" ({scores})" if scores else "") + (f" and {more} more" if more else "")
    searched = ", ".join(name for chosen in _chosen(side["route"]) for name in chosen)
    return said + (f", searching {searched}" if searched else "")


def _chosen(route: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """The collections that each step of a route chose."""
    return [list(map(str, step["chosen"])) for step in route if isinstance(step.get("chosen"), list)]
