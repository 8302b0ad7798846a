"""An installed package adds a reader for a format, which runs in the worker with its limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import Corpus

NAME = "ragistry_plan-1.0"
READER = """\
import os
import sys
from ragistry.readers.blocks import Block, Place, ReadDocument

def read(data, suffix):
    assert not {"pydantic", "ragistry.config"} & sys.modules.keys()
    text = data.decode()
    if "explode" in text:
        raise ValueError("layer 3 is damaged")
    if "hang" in text:
        while True:
            pass
    assert os.getppid() > 1
    return ReadDocument([Block(page, Place(page=number)) for number, page in enumerate(text.split("\\f"), 1)])
"""
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import ragistry
from ragistry.readers.extract import extract
embed_model = "ragistry.testing.hashed:HashingEmbedder"
with ragistry.open_workspace(sys.argv[2], embed_model=embed_model, limits={"seconds": 8}) as workspace:
    workspace.library.create_collection("plans")
    report = workspace.library.ingest_folder(sys.argv[2] + "/plans", "plans")
    found = workspace.search("staircase", technique="bm25", top_k=1).documents[0].metadata
    signature = workspace.reading.signature("a.plan").decode()
print(json.dumps([
    sorted(report.added), {failure.source: str(failure.error) for failure in report.failed},
    [found["source_file"], found["page"]], signature, list(extract(sys.argv[2] + "/plans/house.plan").page_starts),
]))
"""


def test_a_format_of_an_installed_package_is_read_in_the_worker(tmp_path: Path, corpus: Corpus) -> None:
    site = corpus(
        {
            "ragistry_plan.py": READER,
            f"{NAME}.dist-info/METADATA": "Metadata-Version: 2.1\nName: ragistry-plan\nVersion: 1.0\n",
            f"{NAME}.dist-info/entry_points.txt": "[ragistry.readers]\n"
            "plan = ragistry_plan:read\nmissing = ragistry_plan:nothing\ndocx = ragistry_plan:read\n",
        },
        "site",
    )
    files = {"house.plan": "Kitchen\fA staircase", "bad.plan": "explode", "slow.plan": "hang", "a.missing": "text"}
    corpus(files, "plans")
    command = [sys.executable, "-c", PROGRAM, str(site), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    added, failed, found, signature, pages = json.loads(done.stdout)
    assert (added, found, pages) == (["house.plan"], ["house.plan", 2], [0, 9])
    assert signature.endswith("/reader ragistry_plan:read"), "another reader reads the files again"
    reasons = {Path(path).name: reason for path, reason in failed.items()}
    assert reasons.keys() == {"bad.plan", "slow.plan", "a.missing"}
    assert "layer 3 is damaged" in reasons["bad.plan"]
    assert "limits.seconds" in reasons["slow.plan"]
    assert "'ragistry_plan:nothing'" in reasons["a.missing"]
