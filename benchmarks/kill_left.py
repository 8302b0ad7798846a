"""What a killed writer left, seen by a fresh process: a script that prints JSON for `benchmarks.kill`."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from ragistry.stores.local import GRAPH_ABOVE, LocalStore


class Warnings(logging.Handler):
    """Which indexes were made again."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.rebuilt: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "making it again" in record.getMessage():
            self.rebuilt.append("words" if "/lexical:" in record.getMessage() else "vectors")


def look(folder: str, exclusive: bool) -> dict[str, Any]:
    """Versions by source, and how well each chunk is found."""
    warnings = Warnings()
    logging.getLogger("ragistry").addHandler(warnings)
    store = LocalStore(folder, exclusive=exclusive, graph_above=0 if exclusive else GRAPH_ABOVE)
    with store._state.read() as (connection, _):
        pending = store._indexes.lexical.pending(connection) > 0
    seen: dict[str, list[str]] = {}
    documents = list(store.scan())
    for document in documents:
        seen.setdefault(document.metadata["source_file"], []).append(document.content.split()[0])
    whole = {info.source_file: info.chunks for info in store.sources() if info.source_hash}
    vectors = store.vectors([document.id for document in documents])
    rank_one = sum(
        document.id == store.search(vector.tolist(), 1)[0].id
        for document, vector in zip(documents, vectors, strict=True)
    )
    words = sum(len(store.search_text(token, 1000)) != len(tokens) for tokens in seen.values() for token in set(tokens))
    problems = store.verify()
    store.close()
    return {
        "seen": seen, "whole": whole, "chunks": len(documents), "rank_one": rank_one, "words": words,
        "problems": problems, "rebuilt": warnings.rebuilt, "pending": pending,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1], json.loads(sys.argv[2]))))
