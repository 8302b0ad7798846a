"""An installed package gives an embedder and an encoder, which are listed, named in the configuration, and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragistry.protocols import SparseEncoder
from ragistry.testing.encoders import EncoderConformance
from ragistry.testing.sparse import WordCounts
from tests.conftest import Corpus

NAME = "ragistry_letters-1.0"
PACKAGE = {
    "ragistry_letters.py": """\
from ragistry.models.texts import check_texts
from ragistry.testing.hashed import HashingEmbedder
from ragistry.testing.sparse import WordCounts

class Letters(HashingEmbedder):
    def __init__(self, model: str = "16") -> None:
        super().__init__(int(model))

    def embed(self, texts, *, role="document"):
        return super().embed(check_texts(texts), role=role)

class Counts(WordCounts):
    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def encode(self, texts, *, role):
        found = super().encode(texts, role=role)
        return [{term: self.factor * weight for term, weight in one.items()} for one in found]
""",
    f"{NAME}.dist-info/METADATA": "Metadata-Version: 2.1\nName: ragistry-letters\nVersion: 1.0\n",
    f"{NAME}.dist-info/entry_points.txt": """\
[ragistry.embedders]
letters = ragistry_letters:Letters
[ragistry.encoders]
counts = ragistry_letters:Counts
""",
}
CONFORMANCE = """\
import pytest
from ragistry.models.registry import choose_embedder
from ragistry.plugins import find_part
from ragistry.testing.embedders import EmbedderConformance
from ragistry.testing.encoders import EncoderConformance

class TestLetters(EmbedderConformance):
    @pytest.fixture
    def embedder(self):
        return choose_embedder("letters:24")

class TestCounts(EncoderConformance):
    @pytest.fixture
    def encoder(self):
        return find_part("counts", "ragistry.encoders", "encoder")(factor=2)
"""
PROGRAM = """
import json
from ragistry import open_workspace
with open_workspace(".") as workspace:
    workspace.library.create_collection("notes", "Notes")
    for text in ("green tea", "black coffee and tea and tea"):
        workspace.library.ingest_text(text, collection="notes", source=text)
    fingerprint = workspace.store.embedder()
    sparse = workspace.build({"use": "learned_sparse", "encoder": "doubled"}).retrieve("tea")
    dense = workspace.build({"use": "naive"}).retrieve("green tea")
print(json.dumps([fingerprint.dimension, [(one.content, one.score) for one in sparse], dense[0].content]))
"""


class TestWordCounts(EncoderConformance):
    @pytest.fixture
    def encoder(self) -> SparseEncoder:
        return WordCounts()


@pytest.fixture
def home(corpus: Corpus, tmp_path: Path) -> Path:
    """A workspace beside the package."""
    corpus(PACKAGE, "site")
    corpus({"test_mine.py": CONFORMANCE}, "suites")
    documents, models = "embed_model: letters:24\n", "encoders: {doubled: {use: counts, factor: 2}}\n"
    return corpus({"config/documents.yaml": documents, "config/models.yaml": models}, "home")


def run(home: Path, *arguments: str) -> str:
    paths = [str(home.parent / "site"), *filter(None, sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_models_of_a_package_are_named_in_the_configuration_and_used(home: Path) -> None:
    dimension, sparse, dense = json.loads(run(home, "-c", PROGRAM))
    assert (dimension, dense) == (24, "green tea")
    assert sparse == [["black coffee and tea and tea", 8.0], ["green tea", 4.0]]


def test_the_models_of_a_package_are_listed(home: Path) -> None:
    found = json.loads(run(home, "-m", "ragistry", "config", "models", "--json"))
    assert {"embed_model": "letters", "where": "package ragistry-letters"}.items() <= found["models"][2].items()
    assert found["encoders"] == {"counts": "package ragistry-letters"}
    listed = run(home, "-m", "ragistry", "config", "models")
    assert "package ragistry-letters: letters" in listed
    assert "package ragistry-letters: the encoder counts" in listed


def test_the_suites_run_over_the_models_of_a_package(home: Path) -> None:
    suites = home.parent / "suites"
    printed = run(home, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(suites), str(suites))
    assert " passed" in printed
    assert "failed" not in printed
