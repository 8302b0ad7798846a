"""Search under conditions on metadata."""

import sys

from ragistry import open_workspace

with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
    names = ["security.md", "configuration.md"]
    for where in ({"collection": "garden"}, {"source_file": {"$in": names}}, {"chunk_index": {"$lt": 1}}):
        for document in workspace.search("how do I restore a backup?", top_k=2, where=where).documents:
            print(where, document.metadata["source_file"])
