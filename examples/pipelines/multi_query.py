"""Let a language model word the question in other ways, search all of them, and fuse the rankings."""

import json
import sys

from ragistry import open_workspace


def model(prompt: str) -> str:
    """Stand for a language model; the prompt has the JSON Schema of the answer."""
    assert "JSON" in prompt
    return json.dumps({"queries": ["recover an archive", "backup recovery"]})


with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
    technique = workspace.build({"use": "multi_query", "base": "hybrid", "generator": model})
    for document in technique.retrieve("how do I restore a backup?", top_k=3):
        print(f"{document.score:.4f}", document.metadata["source_file"])
