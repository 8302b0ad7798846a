"""Choose the collection by the query; search each with a technique of its own."""

import sys

from ragistry import open_workspace

with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
    entry = {"use": "collection_routed", "base": "hybrid", "techniques": {"garden": "naive"}}
    technique = workspace.build(entry)
    for query in ("how do I restore a backup?", "why do leaves turn yellow?"):
        [document] = technique.retrieve(query, top_k=1)
        print(document.metadata["collection"], document.metadata["source_file"])
