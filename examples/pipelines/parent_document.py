"""Search small chunks, and return the text around each as one larger passage."""

import sys

from ragistry import open_workspace

with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
    technique = workspace.build({"use": "parent_document", "base": "naive", "max_characters": 3000})
    for document in technique.retrieve("how do I restore a backup?", top_k=3):
        print(len(document.content), document.metadata["source_file"])
