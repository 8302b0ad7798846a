"""Compare techniques: every technique over one frozen corpus and the same queries.

`compare` follows the order of the work: test set, systems, rankings, measures and statistics, result.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from math import log
from pathlib import Path
from random import Random
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.asking import TIMED, TIMING_REPEATS, WARM_UP, Asking, failure
from ragistry.evaluation.data.dataset import Dataset, Run, Text
from ragistry.evaluation.data.files import read_beir
from ragistry.evaluation.measures import Measure, parse_measures
from ragistry.evaluation.outputs import check_outputs
from ragistry.evaluation.progress import shown_progress
from ragistry.evaluation.result import MARGIN, Comparison
from ragistry.evaluation.statistics import check_fraction
from ragistry.evaluation.summary import Design, summarise
from ragistry.evaluation.systems.build import Contenders
from ragistry.evaluation.systems.systems import unbuilt, versions
from ragistry.evaluation.systems.variants import (
    CHUNK_SIZE,
    EMBED_MODEL,
    Chunking,
    Grid,
    Variant,
    parse_chunking,
    variants,
)
from ragistry.text.analysis import analyse, query_terms
from ragistry.types import TOP_K_LIMIT, Progress
from ragistry.utils.wording import did_you_mean
from ragistry.workspace import Workspace

MEASURES = ("nDCG@10", "R@100", "RR@10")
DEPTH = 100
"""Number of documents of a ranking, unless a measure needs more."""

Techniques = str | Sequence[str] | Mapping[str, Any]


def compare(
    techniques: Techniques,
    dataset: Dataset | str | Path,
    measures: str | Sequence[str] = MEASURES,
    baseline: str | None = None,
    *,
    margin: float = MARGIN,
    workspace: Workspace | str | Path | None = None,
    grid: Grid | None = None,
    chunk_size: str | int | Chunking | None = None,
    embed_models: Sequence[str] = (),
    depth: int | None = None,
    seed: int = 0,
    tune_on: float | None = None,
    timing_repeats: int = TIMING_REPEATS,
    cache: str | Path | None = None,
    answers: str | Path | bool = True,
    progress: Progress | bool | None = True,
) -> Comparison:
    """Compare techniques on a test set and report which differences are significant.

    The index of a test set has opaque names of sources, and techniques can only read it. A technique that raises, when
    it is built or asked, is left out; `Comparison.failures` has the error. Questions that people asked are in the
    result by their ids.

    Args:
        techniques: Names of techniques.yaml, or a mapping of names to any of: a name of techniques.yaml (None: the
            same name), an entry for `Workspace.build` or what that returned, an object with ``retrieve``, a class, a
            function that makes such an object from ``store`` and ``embedder``, or a run (`read_run`). An entry is built
            over the index of the test set; an object is asked as it is. `as_technique` makes an object of a function
            of a query.
        dataset: A `Dataset`, or a folder in BEIR's layout.
        measures: The first one decides the verdict.
        baseline: The technique that each other one is tested against. The default is ``default`` of techniques.yaml,
            or the first technique if that one is not compared.
        margin: The baseline is kept if no other technique can be better by as much.
        workspace: An open workspace, or its folder (default: the current folder).
        grid: Parameters and the values to compare. ``TECHNIQUE.PARAMETER`` changes an entry of techniques.yaml,
            ``chunk_size`` the chunks.
        chunk_size: ``"document"`` (each is one chunk, as in published results), a number of characters, ``"500/75"``,
            or ``"library"``, which searches the workspace of a `read_library` as it is. By default a synthetic test
            set has the chunks of the library that it was made from, without the words of its queries. Its other
            documents, and a set whose answers are spans, are cut with the settings of the workspace; for any other set
            the default is ``"document"``.
        embed_models: Embedders to compare, each a value of the setting ``embed_model``, such as ``"minilm"`` and
            ``"folder:./models/mine"``. Every technique that uses vectors is compared with each of them, over one index
            for each. Vectors of the library and of earlier comparisons are reused by text.
        depth: Number of documents of a ranking, 1 to 1,000.
        seed: Seed of all random choices.
        tune_on: The share of queries on which the best variant is chosen; it is measured on the others.
        timing_repeats: How often some queries are repeated to measure their time.
        cache: A folder that keeps indexes (default: in the data of the workspace).
        answers: The file that keeps what models, endpoints and functions answer. A question that it has is not asked
            again, and counts with its first time. True: the file of the workspace, if there is one. False: ask anew.
        progress: Called with the current step, and how much of it is done. By default, progress is written to standard
            error: in a changing line in a terminal or notebook, else every ten seconds. False: not at all.

    Raises:
        EvaluationError: An argument is not valid, or a file cannot be written; nothing has been done.
        DatasetError: The test set is not valid; nothing has been done.
        ConfigError: techniques.yaml or a value of the grid is not valid.
        ModelError: A model refused a text, or cannot be reached.
        StoreError: An index cannot be written.
    """
    progress, load = shown_progress(progress), os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    kept = answers if isinstance(answers, bool) else Path(answers)
    outputs = {"answers": kept if isinstance(kept, Path) else None}
    check_outputs(files=outputs, folders={"cache": cache}, seed=seed)
    tested, objects = _test_set(dataset).with_joined_copies(), _named(techniques)
    parsed = parse_measures([measures] if isinstance(measures, str) else measures)
    # Synthetic test sets are cut as the library, others as in published results.
    own = tested.synthetic or tested.spans or (bool(embed_models) and tested.library is not None)
    chunking = Chunking(ingested=True) if chunk_size is None and own else parse_chunking(chunk_size)
    _check_models(embed_models, chunking)
    cache = None if cache is None else Path(cache)
    deepest = _depth(depth, parsed)
    cutoffs = sorted({one.cutoff for one in parsed if one.cutoff and one.cutoff < deepest})
    asking = Asking(tested, deepest, seed, timing_repeats, cutoffs, progress=progress)
    columns = variants(list(objects), chunking, grid or {})
    if chunk_size is not None and CHUNK_SIZE in (grid or {}):
        raise EvaluationError("chunk_size cannot be combined with a grid of chunk sizes")
    with ExitStack() as stack:
        contenders = Contenders(objects, tested, workspace, cache, kept, stack, progress)
        if embed_models:
            embedding = contenders.embedding(columns)
            if not embedding:
                raise EvaluationError(
                    "no compared technique uses vectors, so embed_models cannot change a result; add one"
                )
            columns = variants(list(objects), chunking, grid or {}, embed_models, embedding=embedding)
        baseline = _first_variant(baseline, columns)
        _check_options(columns, baseline, margin, tune_on, timing_repeats)
        contenders.build(columns)
        systems, embedder, asking.answers = contenders.systems, contenders.embedder, contenders.kept
        asking.failures.update({name: failure(error) for name, error in contenders.errors.items()})
        asking.run(systems)
    built = {one.name: one.configuration for one in systems if EMBED_MODEL in one.configuration}
    models = {str(one.embed_model): built[one.name][EMBED_MODEL] for one in columns if one.name in built}
    own_stores = [one.name for one in systems if one.run is None and (one.index is None or one.index.contents)]
    inexact = f"exact, except {', '.join(own_stores)}: as their own store searches"
    origin = {
        "dataset": _dataset_record(tested),
        "groups": {query: group for query, group in tested.groups.items() if group != query},
        "evidence": tested.evidence(),
        "techniques": {one.name: one.configuration for one in systems},
        "embedder": None if embedder is None else embedder.model,
        **({"embedders": models} if embed_models else {}),
        "measures": [str(measure) for measure in parsed],
        "asking": {
            "depth": asking.depth,
            "warm_up_queries": WARM_UP,
            "timing": "a search for the technique's own number of results; "
            f"the median of {1 + timing_repeats} on up to {TIMED} queries, if they are fast",
            "search": inexact if own_stores else "exact: every vector is compared",
        },
        "seed": seed,
        "versions": {"python": platform.python_version()} | versions(),
        "machine": {
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "runtime": getattr(getattr(embedder, "live", None), "runtime", ""),
            "load": load,
            "peak_memory_bytes": peak_memory(),
        },
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if baseline is None:
        baseline = _first_variant(contenders.default, columns)
        baseline = baseline if baseline in {column.name for column in columns} else columns[0].name
    varied = [one for one in columns if one.name != one.technique] if grid or tune_on is not None else []
    # One technique with each embedder: that of the baseline, or the first one that uses vectors.
    each = [one.name for one in columns if one.name.startswith(f"{one.technique}[{one.embed_model}")]
    start = each.index(baseline) // len(embed_models) * len(embed_models) if baseline in each else 0
    embedders = each[start : start + len(embed_models)]
    design = Design(parsed, baseline, margin, tune_on, {one.name: one.technique for one in varied}, embedders)
    ranked = {} if tested.spans else controls(tested, asking.depth, seed)  # They rank documents, not passages.
    joined = {name: {query: asking.joined(hits) for query, hits in run.items()} for name, run in ranked.items()}
    return summarise(asking, design, origin, joined)


def _test_set(dataset: Any) -> Dataset:
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str | Path):
        return read_beir(dataset)
    raise EvaluationError(f"dataset is {dataset!r:.80}; it must be a folder in BEIR's layout or a Dataset")


def _named(techniques: Any) -> dict[str, Any]:
    """Return the object given for each technique, or None for its entry in techniques.yaml."""
    if isinstance(techniques, Mapping):
        named = {name: unbuilt(one) for name, one in techniques.items()}
        named |= {name: None for name, one in named.items() if isinstance(one, str) and one == name}
    else:
        names = [techniques] if isinstance(techniques, str) else list(techniques)
        if unnamed := [one for one in names if not isinstance(one, str)]:
            raise EvaluationError(f"{unnamed[0]!r:.80} has no name; name each technique: {{'mine': …, 'bm25': 'bm25'}}")
        named = dict.fromkeys(names)
    wrong = [name for name in named if not isinstance(name, str) or not name.strip()]
    if wrong:
        raise EvaluationError(f"the name of a technique is {wrong[0]!r:.80}; it must be text and not empty")
    return named


def _check_models(embed_models: Sequence[str], chunking: Chunking) -> None:
    if isinstance(embed_models, str) or not all(isinstance(one, str) and one.strip() for one in embed_models):
        raise EvaluationError(f"embed_models is {embed_models!r:.80}; it must be a list of names, such as ['minilm']")
    if repeated := [name for name, count in Counter(embed_models).items() if count > 1]:
        raise EvaluationError(f"embed_models has {repeated[0]!r} twice; name each model once")
    if embed_models and chunking.library:
        raise EvaluationError(
            "chunk size 'library' searches the vectors of the library, which are of one model; to compare models, "
            "leave out --chunk-size (in Python, chunk_size)"
        )


def _first_variant(name: str | None, columns: Sequence[Variant]) -> str | None:
    """Return the column of that name, or of a technique that is only compared with named models, its first one."""
    own = [column.name for column in columns if column.technique == name and column.embed_model and not column.changes]
    return own[0] if own and name not in {column.name for column in columns} else name


def _check_options(
    columns: Sequence[Variant],
    baseline: str | None,
    margin: float,
    tune_on: float | None,
    repeats: int,
) -> None:
    names = [variant.name for variant in columns]
    if not names:
        raise EvaluationError("techniques is empty; name two or more to compare them")
    if baseline is not None and baseline not in names:
        raise EvaluationError(
            f"the baseline {baseline!r} is not one of the techniques{did_you_mean(baseline, names)}; "
            f"add it, or use one of {', '.join(names)}"
        )
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 < margin <= 1:
        raise EvaluationError(f"margin is {margin!r:.80}; it must be above 0 and at most 1, such as 0.05")
    if tune_on is not None:
        check_fraction(tune_on)
    if type(repeats) is not int or not 0 <= repeats <= 100:
        raise EvaluationError(f"timing_repeats is {repeats!r:.80}; it must be a whole number from 0 to 100")


def _depth(depth: int | None, measures: Sequence[Measure]) -> int:
    deepest = max((measure.cutoff or 1 for measure in measures), default=1)
    chosen = max(DEPTH, deepest) if depth is None else depth
    if deepest > TOP_K_LIMIT:
        raise EvaluationError(f"the measures need {deepest:,} documents, and a ranking has at most {TOP_K_LIMIT:,}")
    if type(chosen) is not int or not deepest <= chosen <= TOP_K_LIMIT:
        raise EvaluationError(
            f"depth is {chosen!r:.80}; it must be a whole number from {deepest}, which the measures need, to "
            f"{TOP_K_LIMIT:,}"
        )
    return chosen


def _dataset_record(dataset: Dataset) -> dict[str, Any]:
    """Describe a test set in figures; ``synthetic``: how a program made queries, None if people wrote all of them."""
    made = [dataset.synthetic[query] for query in dataset.judged if query in dataset.synthetic]
    synthetic = {
        "queries": len(made),
        "kinds": dict(Counter(str(one.get("kind", "unknown")) for one in made)),
        "seeds": sorted({str(one["seed"]) for one in made if "seed" in one}),
        "models": sorted({str(one["model"]) for one in made if "model" in one}),
    }
    return {
        "name": dataset.name,
        "content_hash": dataset.content_hash(),
        "hashes": dataset.part_hashes(),
        "documents": len(dataset.corpus),
        "queries": len(dataset.queries),
        "judged_queries": len(dataset.judged),
        "groups": len({dataset.groups[query] for query in dataset.judged}),
        "judgements": sum(map(len, dataset.qrels.values())),
        "relevant": sum(grade > 0 for grades in dataset.qrels.values() for grade in grades.values()),
        "spans": sum(len(spans) for by_document in dataset.spans.values() for spans in by_document.values()),
        "synthetic": synthetic if made else None,
    }


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


# --- Control rankings that a technique must beat ---
#
# They use the real names, which techniques do not see. A test set whose queries are answered by names alone says
# nothing about retrieval from texts.


_BREAKS = re.compile(r"[^\w]+|_+|(?<=[a-z])(?=[A-Z])|(?<=\D)(?=\d)")
"""Separators of the words in a path."""


def controls(dataset: Dataset, depth: int, seed: int = 0) -> dict[str, Run]:
    """Rank at most ``depth`` documents for every judged query, as ``filename``, ``title_only`` and ``random``."""
    names = {document.id: " ".join(_BREAKS.split(document.id)) for document in dataset.corpus}
    titles = {document.id: _title(document) for document in dataset.corpus}
    return {
        "filename": _by_words(dataset, names, depth, seed),
        "title_only": _by_words(dataset, titles, depth, seed),
        "random": {query: _shuffled(dataset, f"{seed}/{query}", depth) for query in dataset.judged},
    }


def _title(document: Text) -> str:
    """Return the title, else the first line if that is a heading."""
    first = document.text.lstrip().partition("\n")[0]
    return document.title or (first.lstrip("# ") if first.startswith("#") else "")


def _shuffled(dataset: Dataset, seed: str, depth: int) -> list[tuple[str, float]]:
    chosen = Random(seed).sample([document.id for document in dataset.corpus], min(depth, len(dataset.corpus)))
    return [(id, float(depth - at)) for at, id in enumerate(chosen)]


def _by_words(dataset: Dataset, texts: dict[str, str], depth: int, seed: int) -> Run:
    """Rank by the shared words, rare ones before others; documents without any follow in random order."""
    holding: defaultdict[str, list[str]] = defaultdict(list)
    for id, text in texts.items():
        for term in {*analyse(text)}:
            holding[term].append(id)
    run: Run = {}
    for query, text in dataset.judged.items():
        scores: defaultdict[str, float] = defaultdict(float)
        for term in sorted({*query_terms(text)}):
            for id in (documents := holding.get(term, [])):
                scores[id] += log(1 + len(texts) / len(documents))
        best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:depth]
        rest = [(id, 0.0) for id, _ in _shuffled(dataset, f"{seed}/{query}", depth) if id not in scores]
        run[query] = [*((id, float(score)) for id, score in best), *rest][:depth]
    return run
