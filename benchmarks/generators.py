"""Techniques that ask a generator, with a real one: ``python -m benchmarks.generators [--quick]``.

SmolLM2 of 135 million parameters on the processor, with answers that its schema allows; `routing_llm` says how to
install it. So small a model shows that everything is wired, from models.yaml to the trace. What it answers says nothing
about a technique.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from threading import Lock

from pydantic import BaseModel

from benchmarks.routing_llm import LlamaGenerator, opened_model
from ragistry import open_workspace
from ragistry.errors import RagistryError
from ragistry.techniques.classes import wanted_resources

ROOT = Path(__file__).resolve().parents[1]
QUERIES = ("how do I keep slugs away from lettuce", "when are apple trees pruned", "what does potato blight look like")
MODELS = 'generators:\n  small: {use: "benchmarks.generators:SmallGenerator"}\n'


class SmallGenerator:
    """One answer at a time: llama.cpp serves one thread."""

    def __init__(self) -> None:
        self._generator = LlamaGenerator(opened_model())
        self._lock = Lock()
        self.calls = 0

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        with self._lock:
            self.calls += 1
            return self._generator.generate(prompt, schema=schema)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one query for each technique instead of three")
    queries = QUERIES[: 1 if parser.parse_args().quick else None]
    print("| technique | queries with documents | calls | degraded | seconds a query |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "config").mkdir()
        (Path(home) / "config" / "models.yaml").write_text(MODELS, encoding="utf-8")
        with open_workspace(home) as opened:
            opened.library.create_collection("garden", "Growing vegetables and fruit")
            opened.library.ingest_folder(ROOT / "fixtures" / "garden", "garden")
            for name in opened.registry.names():
                wanted = wanted_resources(opened.registry.technique_class(name))
                if "generator" not in wanted or "targets" in wanted:  # a router may have one
                    continue
                answered = degraded = 0
                before = getattr(opened.models.generators["small"], "calls", 0)
                start = time.perf_counter()
                for query in queries:
                    try:
                        result = opened.search(query, technique=name)
                    except RagistryError as error:
                        print(f"{name}: {error}", file=sys.stderr)
                        continue
                    answered += bool(result.documents)
                    degraded += bool(result.degraded)
                    for reason in result.degraded:
                        print(f"{name}: {reason}", file=sys.stderr)
                calls = getattr(opened.models.generators["small"], "calls", 0) - before
                seconds = (time.perf_counter() - start) / len(queries)
                print(f"| `{name}` | {answered} of {len(queries)} | {calls} | {degraded} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
