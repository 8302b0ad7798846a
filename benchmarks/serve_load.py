"""A server under load: searches that arrive at a fixed rate while files are ingested by jobs.

An open loop: each search is due at a fixed moment, whether earlier ones were answered or not, and its latency counts
from that moment. Queries rotate, so that few are answered from a cache. For each rate, new files are uploaded as fast
as jobs take them in. The server breaks at the first rate with an error, or with a p95 above a second.

Before that, `CLIENTS` clients search without a pause, and one call of `search_many` has about as many queries; printed
are the searches a second of both, and their ratio.

usage: python -m benchmarks.serve_load [--quick] [--seconds N] [--files N] [--rates N …]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

import httpx

from ragistry import Workspace, open_workspace
from ragistry.utils.limits import QUERIES

RATES, QUICK_RATES = (2, 5, 10, 20, 40, 60, 80, 120), (5, 20, 60)
SECONDS, QUICK_SECONDS = 60.0, 12.0
FILES, QUICK_FILES = 1_000, 200
FILES_AT_ONCE = 100
HELD = 2_000
"""Chunks in the library before the first search."""
CLIENTS, CAPACITY_SECONDS = 16, 5.0
SLOW = 1.0
"""Seconds: a p95 above this is called broken."""
VOCABULARY = Path(__file__).resolve().parents[1] / "ragistry" / "models" / "data" / "vocab.txt"


@dataclass(slots=True)
class Outcome:
    """What happened at one rate: latencies in seconds, statuses of the answers, files that were taken in.

    ``lags``: by how many seconds this program itself was late to send.
    """

    rate: float
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    lags: list[float] = field(default_factory=list)
    files: int = 0
    seconds: float = 0.0

    @property
    def errors(self) -> int:
        return sum(number for status, number in self.statuses.items() if status != "200")

    @property
    def p50(self) -> float:
        return quantiles(self.latencies, n=100)[49]

    @property
    def p95(self) -> float:
        return quantiles(self.latencies, n=100)[94]

    @property
    def late(self) -> float:
        return quantiles(self.lags, n=100)[94]


class Texts:
    """Texts and queries of random words, the same in each run."""

    def __init__(self) -> None:
        words = VOCABULARY.read_text(encoding="utf-8").split("\n")[2_000:12_000]
        self.words = [word for word in words if word.isalpha()]
        self.random = random.Random(18)

    def text(self, words: int) -> str:
        return " ".join(self.random.choices(self.words, k=words))


def fill(workspace: Workspace, texts: Texts) -> None:
    """Ingest `HELD` chunks of random words."""
    workspace.library.create_collection("load", "Files of the load test")
    for number in range(HELD // 100):
        text = "\n\n".join(texts.text(60) for _ in range(100))
        workspace.library.ingest_text(text, f"held{number}", "load")


@contextmanager
def server(folder: Path, concurrency: int) -> Iterator[str]:
    """The address of `ragistry serve` in a process of its own."""
    command = [sys.executable, "-m", "ragistry", "-w", str(folder), "serve", "--port", "0", "--concurrency"]
    with subprocess.Popen([*command, str(concurrency)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[1]
        finally:
            process.terminate()


async def ingest(client: httpx.AsyncClient, texts: Texts, outcome: Outcome, files: int) -> None:
    """Upload files and wait until the last job has ended."""
    jobs = []
    for first in range(0, files, FILES_AT_ONCE):
        names = [f"{outcome.rate:g}/{number}.md" for number in range(first, min(files, first + FILES_AT_ONCE))]
        sent = [("files", (name, texts.text(100).encode())) for name in names]
        answer = await client.post("/v1/ingest/files", data={"collection": "load"}, files=sent)
        answer.raise_for_status()
        jobs.append(answer.json()["id"])
    for job in jobs:
        while (found := (await client.get(f"/v1/jobs/{job}")).json())["state"] in ("waiting", "running"):
            await asyncio.sleep(0.2)
        assert found["state"] == "done", found
        outcome.files += len(found["report"]["added"])


async def search(client: httpx.AsyncClient, query: str, due: float, outcome: Outcome) -> None:
    outcome.lags.append(time.monotonic() - due)
    try:
        answer = await client.post("/v1/search", json={"query": query, "technique": "hybrid"})
        status = str(answer.status_code)
    except httpx.HTTPError as error:
        status = type(error).__name__
    outcome.latencies.append(time.monotonic() - due)
    outcome.statuses[status] += 1


async def measured(url: str, texts: Texts, rate: float, seconds: float, files: int) -> Outcome:
    """One rate, for so many seconds. The files of a rate are all taken in before the next one begins."""
    outcome = Outcome(rate)
    limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=100)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        await search(client, texts.text(6), time.monotonic(), Outcome(0))
        began = time.monotonic()
        taking_in = asyncio.create_task(ingest(client, texts, outcome, files))
        pending = []
        for number in range(round(rate * seconds)):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            pending.append(asyncio.create_task(search(client, texts.text(6), due, outcome)))
        await asyncio.gather(*pending)
        await taking_in
        outcome.seconds = time.monotonic() - began
    return outcome


async def searched_without_pause(url: str, texts: Texts, technique: str | None) -> tuple[float, int]:
    """Searches a second of clients that send the next query when the last one is answered, and errors."""
    statuses: Counter[int] = Counter()
    began = time.monotonic()

    async def ask() -> None:
        address = httpx.URL(url)
        reader, writer = await asyncio.open_connection(address.host, address.port)  # httpx takes as long as the server
        while time.monotonic() - began < CAPACITY_SECONDS:
            body = json.dumps({"query": texts.text(6), "technique": technique})
            writer.write(
                f"POST /v1/search HTTP/1.1\r\nHost: {address.netloc.decode()}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            statuses[int(head.split()[1])] += 1
        writer.close()

    await asyncio.gather(*(ask() for _ in range(CLIENTS)))
    return statuses[200] / (time.monotonic() - began), statuses.total() - statuses[200]


def print_capacity(url: str, texts: Texts) -> None:
    """Print searches a second of many clients, and of one call of `search_many` for as many queries."""
    for technique in (None, "naive", "bm25"):
        rate, errors = asyncio.run(searched_without_pause(url, texts, technique))
        queries = [texts.text(6) for _ in range(min(QUERIES, max(1, round(rate * CAPACITY_SECONDS))))]
        began = time.monotonic()
        body = {"queries": queries, "technique": technique}
        httpx.post(f"{url}/v1/search/many", json=body, timeout=120).raise_for_status()
        together = len(queries) / (time.monotonic() - began)
        name = technique or "the default technique"
        print(
            f"{CLIENTS} clients, {name}: {rate:.0f} searches/s, {errors} errors; search_many: {together:.0f}/s, "
            f"{together / max(rate, 1):.2f} times as many",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rates, a short time, few files")
    parser.add_argument("--seconds", type=float, help="for each rate")
    parser.add_argument("--files", type=int, help="for each rate")
    parser.add_argument("--rates", type=float, nargs="+", help="searches a second")
    parser.add_argument("--concurrency", type=int, default=16, help="searches that the server runs at once [16]")
    options = parser.parse_args()
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    files = options.files or (QUICK_FILES if options.quick else FILES)
    texts = Texts()
    print(
        f"load of the machine when it began: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores; {HELD:,} chunks held\n"
    )
    columns = ("searches/s", "errors", "p50 ms", "p95 ms", "sent late, p95 ms", "files taken in", "all done after s")
    broken = None
    with TemporaryDirectory() as name:
        with open_workspace(name) as workspace:
            fill(workspace, texts)
        with server(Path(name), options.concurrency) as url:
            print_capacity(url, texts)
            print(f"\n| {' | '.join(columns)} |\n|{'--:|' * len(columns)}")
            for rate in options.rates or (QUICK_RATES if options.quick else RATES):
                outcome = asyncio.run(measured(url, texts, rate, seconds, files))
                said = f"{outcome.errors} {dict(outcome.statuses) if outcome.errors else ''}".strip()
                times = " | ".join(f"{value * 1000:.0f}" for value in (outcome.p50, outcome.p95, outcome.late))
                print(f"| {rate:g} | {said} | {times} | {outcome.files} | {outcome.seconds:.0f} |", flush=True)
                if outcome.errors or outcome.p95 > SLOW:
                    broken = broken or rate
                if outcome.errors > len(outcome.latencies) / 2:
                    break
    print(f"\nit breaks at {broken:g} searches a second" if broken else "\nit does not break at these rates")


if __name__ == "__main__":
    main()
