"""A package or the configuration adds a reader for a format, which runs in the worker with its limits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
import typer

from ragistry import open_workspace
from ragistry.cli.doctor import doctor
from ragistry.errors import RagistryError
from ragistry.readers.reader_process import close_workers
from tests.conftest import Corpus
from tests.messages import refused

NAME = "ragistry_plan-1.0"


@pytest.fixture(autouse=True)
def _new_workers() -> Iterator[None]:
    """Each test has modules of its own, also in the processes that read."""
    yield
    close_workers()


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
    [found["source_file"], found["page"]], signature,
    [start for start, _ in extract(sys.argv[2] + "/plans/house.plan").places],
]))
"""


@pytest.mark.slow
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
    assert signature.endswith("/reader ragistry_plan:read 1.0"), "another reader reads the files again"
    reasons = {Path(path).name: reason for path, reason in failed.items()}
    assert reasons.keys() == {"bad.plan", "slow.plan", "a.missing"}
    assert "layer 3 is damaged" in reasons["bad.plan"]
    assert "limits.seconds" in reasons["slow.plan"]
    assert "'ragistry_plan:nothing'" in reasons["a.missing"]


OWN = "ragistry.testing.hashed:HashingEmbedder"
MAIL = """From: a@example.com
Subject: The house
Content-Type: multipart/mixed; boundary=x

--x

See the plan.
--x
Content-Type: application/octet-stream
Content-Disposition: attachment; filename=garden.plan

A fountain
--x--
"""


def test_the_configuration_adds_and_replaces_readers_which_also_read_attachments_and_members(
    tmp_path: Path, corpus: Corpus
) -> None:
    """A changed reader reads its files again, and no others."""
    readers = "readers:\n" + "".join(f"  {suffix}: plan_reader:read\n" for suffix in (".plan", ".md", ".pdf", ".json"))
    corpus({"plan_reader.py": READER, "config/documents.yaml": readers}, "")
    plan = b"Kitchen\x01\x02\x03\fA staircase"  # by its content, this is no text
    folder = corpus({"house.plan": plan, "a.md": "Roof\fCellar", "b.pdf": "Well\fBarn", "c.txt": "A field"}, "plans")
    corpus({"mail.eml": MAIL, "d.json": "Hedge\fGate"}, "plans")
    with ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("attic.plan", plan.replace(b"staircase", b"skylight"))
    with open_workspace(tmp_path, embed_model=OWN) as workspace:
        workspace.library.create_collection("plans")
        report = workspace.library.ingest_folder(folder, "plans")
        assert not report.failed
        places = {"staircase": 2, "Cellar": 2, "Barn": 2, "Gate": 2, "skylight": 2, "fountain": 1}
        for word, page in places.items():
            assert workspace.search(word, technique="bm25", top_k=1).documents[0].metadata["page"] == page
    corpus({"plan_reader.py": READER.replace("data.decode()", "data.decode().upper()")}, "")
    with open_workspace(tmp_path, embed_model=OWN) as workspace:
        report = workspace.library.ingest_folder(folder, "plans")
        assert report.skipped == ["c.txt"], "only its reader is the same"
        assert workspace.search("cellar", technique="bm25", top_k=1).documents[0].content == "CELLAR"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("{.plan: plam}", "plam"),
        ("{.plan: nothing:read}", "nothing:read"),
        ("{.plan: plan_reader:raed}", "raed"),
        ("{.plan: plan_reader:os}", "os"),
        ("{.plan: 'plan_reader:'}", "plan_reader:"),
        ("{.plan: 3}", "3"),
        ("{plan: plan_reader:read}", "plan"),
        ("{.PDF: plan_reader:read}", ".PDF"),
        ("{.tar.gz: plan_reader:read}", ".tar.gz"),
        ("{.zip: plan_reader:read}", ".zip"),
        ("[.plan]", "readers"),
    ],
)
def test_a_wrong_reader_is_refused_with_its_line(setting: str, value: str, tmp_path: Path, corpus: Corpus) -> None:
    files = {"plan_reader.py": READER, "config/documents.yaml": f"n_results: 3\nreaders: {setting}\n", "a.plan": "text"}
    corpus(files, "")
    with refused(RagistryError, "documents.yaml:2", value), open_workspace(tmp_path, embed_model=OWN) as workspace:
        workspace.library.create_collection("plans")
        workspace.library.ingest_file(tmp_path / "a.plan", "plans")


def test_doctor_names_a_broken_reader(tmp_path: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    readers = "readers:\n  .plan: plan_reader:raed\n"
    corpus({"plan_reader.py": READER, "config/documents.yaml": readers}, "")
    with pytest.raises(typer.Exit):
        doctor(tmp_path, as_json=True)
    found = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert found["reader .plan"]["state"] == "failed"
    assert "documents.yaml:2" in found["reader .plan"]["detail"]
