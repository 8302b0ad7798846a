"""Search words and meaning, and rerank the best 30 with a function."""

import sys

from ragistry import open_workspace


def overlap(query: str, texts: list[str]) -> list[float]:
    """Score each text by the words that it shares with the query; a cross-encoder would go here."""
    words = set(query.lower().split())
    return [float(len(words & set(text.lower().split()))) for text in texts]


with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
    base = {"use": "hybrid", "bases": ["bm25", "naive"]}
    technique = workspace.build({"use": "rerank", "base": base, "reranker": overlap, "fetch": 30})
    for document in technique.retrieve("how do I restore a backup?", top_k=3):
        print(f"{document.score:.2f}", document.metadata["source_file"])
