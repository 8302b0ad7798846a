"""Kills a process that writes to a `LocalStore` at random moments, and looks at what is left.

    python -m benchmarks.kill [--kills 200 | --quick] [--seed 1234] [--only words] [--power]

The process writes, writes words before vectors, replaces, moves, renames, deletes, embeds again and repairs, and says
what it begins and what is done. After each kill a fresh process must find every source in the version that was
acknowledged last or, of the one operation that was under way, in its old or new state: whole, each chunk by its words
and by its own vector, which only a chunk of the write under way may lack, and the files sound. ``--only words``: the
kills fall after the words of a source are written, before and while its vectors are. The seed decides where.

``--power``: of the database, only what was forced to the disk survives a kill, as in a power cut, and the indexes are
gone. A library that a C compiler builds copies each file of the database when it is synchronised.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import numpy as np

from ragistry.library.embedding import reembed
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk, EmbedderFingerprint

ROOT = Path(__file__).resolve().parents[1]
DIMENSION, CHUNKS, FILES = 24, 12, 25
COLLECTIONS = ("a", "b", "c")
NAMES = ("put", "put", "words", "replace", "delete", "move", "rename", "reembed", "repair", "flush")
WRITTEN = "words are written"
PAUSES = (0.0, 0.003, 0.03)
"""Seconds that the embedder takes for five chunks."""
POWER = r"""
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>

static int synchronised(int fd, int result) {
    char link[64], path[PATH_MAX], target[2 * PATH_MAX], part[2 * PATH_MAX + 8], buffer[1 << 16];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return result;
    path[size] = 0;
    char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/store.db", 9)) return result;
    snprintf(target, sizeof target, "%s%s", getenv("SYNCHRONISED"), name);
    snprintf(part, sizeof part, "%s.part", target);
    int out = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    off_t place = 0; /* no second descriptor: closing it would end the locks of SQLite */
    while ((size = pread(fd, buffer, sizeof buffer, place)) > 0) place += write(out, buffer, size);
    close(out);
    rename(part, target);
    return result;
}
int fsync(int fd) { return synchronised(fd, syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return synchronised(fd, syscall(SYS_fdatasync, fd)); }
"""
State = dict[str, Any]
"""``sources``: version by ``collection/file``; ``model``: of the embedder."""


class Embedder:
    """A direction for each text and model."""

    def __init__(self, model: str) -> None:
        self.fingerprint = EmbedderFingerprint("made", model, "", DIMENSION)

    def count_tokens(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: list[str], *, role: str = "document") -> Any:  # noqa: ARG002
        rows = [np.random.default_rng(random.Random(self.fingerprint.model + text).randrange(2**32)) for text in texts]
        vectors = np.array([row.normal(size=DIMENSION) for row in rows], dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def chunks_of(collection: str, file: str, version: int, model: str) -> list[EmbeddedChunk]:
    """The chunks of one version of a source; the first word of each is in no other version."""
    texts = [f"{file}v{version} part{index}" for index in range(CHUNKS)]
    origin = {"collection": collection, "source_file": file, "source": file, "source_hash": str(version)}
    return [
        EmbeddedChunk(text, {**origin, "chunk_index": index}, vector)
        for index, (text, vector) in enumerate(zip(texts, Embedder(model).embed(texts), strict=True))
    ]


def operations(state: State, rng: random.Random, names: tuple[str, ...]) -> Any:
    """Random operations, without end: what to say, what to do, and the state after it."""
    version = max(state["sources"].values(), default=0)
    while True:
        version += 1
        name = rng.choice(names)
        sources: dict[str, int] = dict(state["sources"])
        model = state["model"]
        there = rng.choice(sorted(sources)) if sources else ""
        collection, _, file = there.partition("/")
        target = rng.choice(COLLECTIONS)
        if name in ("put", "words"):
            collection, file = target, f"file{rng.randrange(FILES)}"
            there = f"{collection}/{file}"
        if not there and name not in ("reembed", "repair", "flush"):
            continue
        if name in ("put", "words", "replace"):
            sources[there] = version
        elif name == "delete":
            del sources[there]
        elif name == "move":
            if f"{target}/{file}" in sources:
                continue
            sources[f"{target}/{file}"] = sources.pop(there)
        elif name == "rename":
            if target == collection or any(key.startswith(f"{target}/") for key in sources):
                continue
            sources = {
                f"{target}/{key.partition('/')[2]}" if key.startswith(f"{collection}/") else key: value
                for key, value in sources.items()
            }
        elif name == "reembed":
            model = "one" if model == "other" else "other"
        after = {"sources": sources, "model": model}
        yield (name, collection, file, target, version), after
        state = after


def complete(store: LocalStore, model: str, pause: float = 0.0) -> None:
    """Give the chunks that wait their vectors, a few at a time, by an embedder that takes ``pause`` seconds."""
    embedder = Embedder(model)
    store.use_embedder(embedder.fingerprint)
    while found := store.waiting(limit=5):
        time.sleep(pause)
        store.add_vectors([number for number, _ in found], embedder.embed([one.content for _, one in found]))


def work(folder: str, state: State, seed: str, only: str) -> None:
    """Do random operations and say each, until killed."""
    rng = random.Random(seed)
    store = LocalStore(folder, lock_timeout=30)
    complete(store, state["model"])
    print("ready", flush=True)
    names = (only, only, "delete", "flush") if only == "words" else NAMES
    if only == "power":  # a repair renames files, which the library does not follow
        names = tuple(name for name in names if name != "repair")
    for (name, collection, file, target, version), after in operations(state, rng, names):
        print(json.dumps([name, after]), flush=True)
        if name in ("put", "replace"):
            store.use_embedder(Embedder(after["model"]).fingerprint)
            store.replace_source(collection, file, chunks_of(collection, file, version, after["model"]))
        elif name == "words":
            store.use_embedder(Embedder(after["model"]).fingerprint)
            chunks = chunks_of(collection, file, version, after["model"])
            store.replace_source(collection, file, [chunk._replace(embedding=None) for chunk in chunks])
            print(WRITTEN, flush=True)
            complete(store, after["model"], rng.choice(PAUSES))
        elif name == "delete":
            store.delete(where={"$and": [{"collection": collection}, {"source_file": file}]})
        elif name == "move":
            store.move_source(file, collection, target)
        elif name == "rename":
            store.move_collection(collection, target)
        elif name == "reembed":
            reembed(store, Embedder(after["model"]))
        elif name == "repair":
            Path(folder, rng.choice(("words", "vectors")), "stamp.json").unlink(missing_ok=True)
            store.repair()
        else:
            store.flush()
        print("done", flush=True)


def look(folder: str) -> dict[str, Any]:
    """What a fresh process finds."""
    with closing(LocalStore(folder, lock_timeout=30)) as store:
        recorded = store.embedder()
        model = recorded.model if recorded else "one"
        sources, torn, unfound, waiting = {}, [], [], 0
        for info in store.sources():
            where = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
            documents = list(store.scan(where))
            versions = {document.content.split()[0] for document in documents}
            if len(documents) != CHUNKS or len(versions) != 1 or not info.source_hash:
                torn.append(info.source_file)
                continue
            version = int(info.source_hash)
            sources[f"{info.collection}/{info.source_file}"] = version
            ids = [document.id for document in documents]
            words = store.search_text(versions.pop(), 1000, where={"collection": info.collection})
            expected = chunks_of(info.collection, info.source_file, version, model)
            lacking = {one.content for _, one in store.waiting(limit=10_000)}
            expected = [chunk for chunk in expected if chunk.text not in lacking]
            waiting += info.waiting
            nearest = [store.search(chunk.embedding, 1)[0].content for chunk in expected]
            is_found = nearest == [chunk.text for chunk in expected] and len(expected) + info.waiting == CHUNKS
            if not {document.id for document in words} >= set(ids) or not is_found:  # others have a form of the word
                unfound.append(info.source_file)
        return {
            "sources": sources, "model": model, "torn": torn, "unfound": unfound, "problems": store.verify(),
            "chunks": store.count(), "waiting": waiting,
        }  # fmt: skip


def in_process(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.kill", *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, **options
    )


def _lines_until_written(output: IO[str], times: int) -> list[str]:
    """Read lines until the words of this many sources are written."""
    lines: list[str] = []
    while lines.count(WRITTEN) < times and (line := output.readline()):
        lines.append(line.rstrip("\n"))
    return lines


def _replace(folder: Path, source: Path) -> None:
    """Replace a folder by the database in another one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("store.db", "store.db-wal"):
        if (source / name).exists():
            shutil.copy(source / name, folder)


def kill_once(
    folder: Path, state: State, rng: random.Random, tally: Counter[str], only: str = "", library: Path | None = None
) -> State:
    """Let a process work, kill it, compare what is left with what was acknowledged; returns the state now.

    ``library``: that of `POWER`.
    """
    safe = folder.parent / "synchronised"
    environment = dict(os.environ)
    if library is not None:
        LocalStore(folder).close()
        _replace(safe, folder)
        environment |= {"LD_PRELOAD": str(library), "SYNCHRONISED": str(safe)}
    process = in_process("work", str(folder), json.dumps(state), str(rng.random()), only, env=environment)
    assert process.stdout is not None
    process.stdout.readline()
    aims = only == "words"
    lines = _lines_until_written(process.stdout, rng.randrange(1, 5)) if aims else []
    time.sleep(rng.uniform(0.0, 0.06 if aims else 1.2))
    process.kill()
    lines += process.stdout.read().splitlines()
    process.wait()
    if library is not None:
        _replace(folder, safe)
    if lines and not lines[-1].endswith(("]", "done", WRITTEN)):
        lines.pop()  # half a line
    lines = [line for line in lines if line != WRITTEN]
    begun = [json.loads(line) for line in lines if line != "done"]
    done = lines.count("done")
    acknowledged = begun[done - 1][1] if done else state
    possible = [acknowledged, *([begun[done][1]] if len(begun) > done else [])]
    tally[f"during {begun[done][0]}" if len(begun) > done else "between operations"] += 1
    seen = in_process("look", str(folder))
    found = json.loads(seen.communicate()[0])
    now = {key: found[key] for key in ("sources", "model")}
    tally["kills"] += 1
    tally["operations"] += done
    tally["lost or torn"] += now not in possible or bool(found["torn"])
    tally["not found"] += len(found["unfound"])
    tally["unsound"] += bool(found["problems"])
    tally["between words and vectors"] += bool(found["waiting"])
    if now not in possible or found["torn"] or found["unfound"] or found["problems"]:
        print(f"WRONG: {begun[done:] and begun[done][0]} {found['torn']} {found['unfound']} {found['problems']}")
    return now


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4], sys.argv[5])
        return
    if sys.argv[1:2] == ["look"]:
        print(json.dumps(look(sys.argv[2])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="15 kills")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="decides where the kills fall")
    parser.add_argument("--only", choices=("words",), default="", help="only writes of words before vectors")
    parser.add_argument("--power", action="store_true", help="what was not forced to the disk is lost; no repairs")
    options = parser.parse_args()
    rng, tally, state = random.Random(options.seed), Counter[str](), {"sources": {}, "model": "one"}
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "power.so" if options.power else None
        if library is not None:
            build = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
            subprocess.run(build, input=POWER, text=True, check=True)
        for _ in range(15 if options.quick else options.kills):
            state = kill_once(
                Path(folder) / "store", state, rng, tally, options.only or "power" * options.power, library
            )
    print(f"seed {options.seed}\n\n| what | times |\n|---|--:|")
    for name, times in sorted(tally.items()):
        print(f"| {name} | {times} |")
    print("\nasked for: nothing lost or torn, everything found by vector and by words, sound files")


if __name__ == "__main__":
    main()
