"""Requests made from the description of the API, sent to a server: how many are answered with an error of the server?

    python -m benchmarks.fuzz [--quick] [--examples 50] [--seed 0]

schemathesis makes requests that the description allows, and others that it forbids; the seed decides which. Each route
is asked by every kind of caller: without tokens, with one for everything, with one that may only read one collection,
and with one that is not known. In half of what is allowed, names are those of the library, so that the routes do their
work. An answer is a fault if its status is 5xx, or if status, headers or body are not as described. A 503 because too
many requests run at once is none, and counted apart. The run fails where there is a fault.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ragistry import open_workspace
from ragistry.server.access import Tokens
from ragistry.testing.openai_server import OpenAIServer

EXAMPLES, QUICK = 50, 3
"""Requests for each route, caller and mode."""
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
TEXTS = {
    "tea": {"leaves/green.txt": "Steep green tea in water of eighty degrees."},
    "weather": {"fronts.txt": "A cold front brings rain and then clear skies."},
}
NEW_NAMES = ("tea", "steep", "rain-2")
"""Of collections."""
COMPARISON = {
    "techniques": ["naive", "bm25"],
    "queries": '{"text": "green tea", "sources": ["leaves/green.txt"]}\n{"text": "rain", "sources": ["fronts.txt"]}',
}
TECHNIQUES = ("naive", "bm25", "hybrid", "collection_routed", "parent_document", "newest")
SECONDS = 60.0
"""For one answer."""


@dataclass(slots=True)
class Outcome:
    """Answers to the requests of one route: how many of each status, 503 of a busy server apart, and faults."""

    statuses: Counter[int] = field(default_factory=Counter)
    busy: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.statuses += other.statuses
        self.busy += other.busy
        self.faults += other.faults

    @property
    def failed(self) -> int:
        """Answers with 5xx of a server that is not busy."""
        return sum(number for status, number in self.statuses.items() if status >= 500) - self.busy


Known = Mapping[str, Sequence[str]]
"""Values of the library, by the name of a parameter or field."""


def ask(
    operation: Any,
    mode: GenerationMode,
    examples: int,
    *,
    headers: dict[str, str],
    known: Known | None = None,
    start: int = 0,
) -> Outcome:
    """Send requests of one route and check the answers.

    Args:
        operation: Of a schema that schemathesis has read.
        mode: Whether the requests are as described, or not.
        examples: Maximum number of requests.
        headers: Sent with each request.
        known: Values for half of the requests that are as described.
        start: Seed of the requests.
    """
    outcome = Outcome()

    @seed(start)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), chance=st.randoms(use_true_random=False))
    def send(case: Any, chance: Random) -> None:
        is_aimed = known and mode is GenerationMode.POSITIVE and chance.random() < 0.5
        if is_aimed:
            aim(case, known or {}, chance)
        checks = CHECKS if is_aimed else [*CHECKS, negative_data_rejection]
        response = case.call(headers=headers)
        outcome.statuses[response.status_code] += 1
        if is_busy(response):
            outcome.busy += 1
            return
        try:
            case.validate_response(response, checks=checks)
        except (Failure, FailureGroup) as error:
            outcome.faults.append(f"{operation.label}: {error}\n{case.as_curl_command()}")

    with suppress(Unsatisfiable):  # a request that takes nothing cannot be made wrong
        send()
    return outcome


def is_busy(response: Any) -> bool:
    """Whether too many requests ran at once."""
    return response.status_code == 503 and response.json()["error"]["type"] == "ServerBusyError"


def aim(case: Any, known: Known, chance: Random) -> None:
    """Put values of the library into a request."""
    for values in (case.path_parameters, case.query, case.body):
        if not isinstance(values, dict):
            continue
        for name in values:
            is_new = name == "name" and values is case.body
            if found := NEW_NAMES if is_new else known.get(name):
                values[name] = [chance.choice(found)] if isinstance(values[name], list) else chance.choice(found)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of `ragistry serve` in a process of its own; its log is a file of the folder."""
    command = [sys.executable, "-m", "ragistry", "-w", str(folder), "serve", "--port", "0"]
    log = folder / f"serve-{len(list(folder.glob('*.log')))}.log"
    with log.open("w") as into, subprocess.Popen(command, stderr=into) as process:
        try:
            while not (said := re.search(r"^serving: (\S+)", log.read_text(), re.MULTILINE)):
                if process.poll() is not None:
                    sys.exit(f"the server did not start: {log.read_text()}")
                time.sleep(0.05)
            yield said[1]
        finally:
            process.terminate()


def filled(client: httpx.Client, route: str) -> Known:
    """Make what earlier requests deleted of the library, wait for jobs, and return its names for a route."""
    there = {one["name"] for one in client.get("/v1/collections").raise_for_status().json()["collections"]}
    for collection, texts in TEXTS.items():
        if collection not in there:
            client.post("/v1/collections", json={"name": collection}).raise_for_status()
        sources = [{"source": name, "text": text} for name, text in texts.items()]
        client.post("/v1/ingest/texts", json={"collection": collection, "sources": sources}).raise_for_status()
    jobs = ended(client)
    ids = [job["id"] for job in jobs if job["kind"] == "comparison" or "comparisons" not in route][:20]
    collections, names = list(TEXTS), [name for texts in TEXTS.values() for name in texts]
    return {
        "collection": collections, "to": collections, "name": names, "source": names, "technique": TECHNIQUES,
        "techniques": TECHNIQUES, "id": ids,
    }  # fmt: skip


def ended(client: httpx.Client) -> list[dict[str, Any]]:
    """The jobs, when none is left; comparisons are cancelled except the first one, which has a report."""
    while True:
        jobs: list[dict[str, Any]] = client.get("/v1/jobs").raise_for_status().json()["jobs"]
        comparisons = [job for job in jobs if job["kind"] == "comparison"]
        if not comparisons:
            client.post("/v1/comparisons", json=COMPARISON).raise_for_status()
            continue
        left = [job for job in jobs if job["state"] in ("waiting", "running")]
        if not left:
            return sorted(jobs, key=lambda job: job["state"] != "done")
        for job in left:
            if job in comparisons and len(comparisons) > 1:
                client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
        time.sleep(0.02)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def fuzz(folder: Path, examples: int, start: int) -> dict[str, dict[str, Outcome]]:
    """Outcomes by caller and route."""
    found: dict[str, dict[str, Outcome]] = {}
    with open_workspace(folder):
        pass
    with served(folder) as url:
        found["no tokens"] = each_route(url, examples, start, {}, lambda: httpx.Client(base_url=url, timeout=SECONDS))
    tokens = Tokens(folder)
    everything = bearer(tokens.add("everything", ["admin"]))
    callers = {
        "token for everything": everything,
        "token to read one collection": bearer(tokens.add("reader", ["read"], ["tea"])),
        "token that is not known": bearer("none"),
    }
    with served(folder) as url:
        for caller, headers in callers.items():
            owner = lambda: httpx.Client(base_url=url, headers=everything, timeout=SECONDS)  # noqa: E731
            found[caller] = each_route(url, examples, start, headers, owner)
    return found


def each_route(
    url: str, examples: int, start: int, headers: dict[str, str], owner: Callable[[], httpx.Client]
) -> dict[str, Outcome]:
    """Ask every route in both modes; ``owner`` connects as a caller who may do everything."""
    with owner() as client:
        description = client.get("/openapi.json").raise_for_status().json()
        schema = schemathesis.openapi.from_dict(description)
        schema.config.update(base_url=url, request_timeout=SECONDS)
        found = {}
        for one in schema.get_all_operations():
            operation, outcome = one.ok(), Outcome()
            for mode in GenerationMode:
                known = filled(client, operation.label)
                outcome.add(ask(operation, mode, examples, headers=headers, known=known, start=start))
            found[operation.label] = outcome
        client.get("/healthz").raise_for_status()
    return found


def print_table(found: dict[str, dict[str, Outcome]]) -> None:
    """Print the answers by route, and by caller."""
    rows = {"all": Outcome()}
    for caller, outcomes in found.items():
        for route, outcome in outcomes.items():
            for label in (route, caller, "all"):
                rows.setdefault(label, Outcome()).add(outcome)
    print("| route or caller | requests | 2xx | 4xx | 503, busy | other 5xx | other faults |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for label, outcome in sorted(rows.items()):
        number = Counter[int]()
        for status, times in outcome.statuses.items():
            number[status // 100] += times
        cells = (outcome.statuses.total(), number[2], number[4], outcome.busy, outcome.failed)
        print(f"| {label} | {' | '.join(str(cell) for cell in cells)} | {len(outcome.faults) - outcome.failed} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} requests for each route, caller and mode")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help=f"requests instead of {EXAMPLES}")
    parser.add_argument("--seed", type=int, default=0, help="of the requests")
    options = parser.parse_args()
    began = time.perf_counter()
    with TemporaryDirectory() as name, OpenAIServer("small", accent="vllm") as writer:
        (Path(name) / "config").mkdir()
        (Path(name) / "config" / "models.yaml").write_text(
            f'generators: {{writer: {{use: openai, url: "{writer.url}", model: small}}}}\n', encoding="utf-8"
        )
        found = fuzz(Path(name), QUICK if options.quick else options.examples, options.seed)
        tracebacks = sum(log.read_text(encoding="utf-8").count("Traceback") for log in Path(name).glob("*.log"))
    print_table(found)
    outcomes = [outcome for routes in found.values() for outcome in routes.values()]
    faults = [fault for outcome in outcomes for fault in outcome.faults]
    failed = sum(outcome.failed for outcome in outcomes)
    requests = sum(outcome.statuses.total() for outcome in outcomes)
    seconds = time.perf_counter() - began
    print(f"\n{requests:,} requests in {seconds:.0f} s: {failed} answers with 5xx, {len(faults)} faults")
    print(f"{tracebacks} tracebacks in the log of the server")
    for fault in faults[:20]:
        print(f"\n{fault}")
    if failed or faults or tracebacks:
        sys.exit(f"{failed} answers with 5xx, {len(faults)} faults")


if __name__ == "__main__":
    main()
