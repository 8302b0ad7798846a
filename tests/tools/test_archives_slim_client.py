"""Archives with the slim package `chromadb-client` alone: none of what a Chroma server needs is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.tools.archive_servers import HEATING

pytest_plugins = ["tests.tools.archive_fixture"]

ROOT = Path(__file__).resolve().parents[2]
CLIENT = "chromadb-client==1.5.9"
BESIDE = ("filelock", "httpx", "langchain-core", "numpy", "pydantic", "ruamel.yaml", "stamina")
ABSENT = (
    "onnxruntime",
    "tokenizers",
    "chromadb_rust_bindings",
    "tantivy",
    "pypdfium2",
    "pocketflow",
    "uvicorn",
    "typer",
)

SCRIPT = """
import importlib.util, sys, warnings
warnings.simplefilter("error")
from ragistry.tools.archives import create_archive_search_tool, embed_query, extract_rag_config

assert "chromadb" not in sys.modules
assert not [name for name in sys.argv[4].split(",") if importlib.util.find_spec(name)]
archive = {"name": "Maintenance", "collection_name": sys.argv[1], "embedding_model": sys.argv[2]}
gone = {**archive, "name": "Plans", "collection_name": "not-there"}
plain = {**archive, "name": "Plain", "collection_name": sys.argv[5], "layer": "*"}
config = extract_rag_config({"configurable": {"rag_config": {"archives": [archive, gone, plain]}}})
tool = create_archive_search_tool(config)
print(tool.invoke({"query": sys.argv[3], "top_k": 2}))
print(len(embed_query("a", sys.argv[2])), "numbers")
"""


@pytest.fixture(scope="session")
def slim_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the slim client, what archives need beside it, and what these need."""
    folder = tmp_path_factory.mktemp("slim")
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python3*/site-packages")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=0", "--no-deps"]
    try:
        done = subprocess.run([*pip, "--target", packages, CLIENT], capture_output=True, text=True, timeout=60)
    except subprocess.SubprocessError as error:
        pytest.skip(f"pip cannot install {CLIENT}: {error}")
    if done.returncode:
        pytest.skip(f"pip cannot install {CLIENT}: {done.stderr[-300:]}")
    [client] = distributions(name="chromadb-client", path=[str(packages)])
    seen: set[str] = set()
    for requirement in (*BESIDE, *wanted(client)):
        link(requirement, packages, seen)
    return folder / "bin" / "python"


def wanted(installed: Distribution) -> list[str]:
    """What a distribution needs here, without its extras."""
    requirements = [Requirement(text) for text in installed.requires or ()]
    return [each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]


def link(name: str, packages: Path, seen: set[str]) -> None:
    """Put a distribution of this environment, and all that it needs, into another one."""
    if name in seen:
        return
    seen.add(name)
    installed = distribution(name)
    for top in {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}:
        assert top != "chromadb", "the full client must stay out"
        if not (packages / top).exists():
            (packages / top).symlink_to(installed.locate_file(top))
    for requirement in wanted(installed):
        link(requirement, packages, seen)


def test_archives_are_searched_with_the_slim_client_alone(slim_python, servers):
    archive = servers.archive("Maintenance", HEATING)
    # Made by the full client with its default embedding function, which the slim one could not build.
    servers.client.create_collection("default-function-unfilled")
    arguments = [archive.collection_name, servers.tei.model, HEATING[0], ",".join(ABSENT), "default-function-unfilled"]
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1",
        "DOCPROC_CHROMADB_URL": servers.chroma, "DOCPROC_TEI_EMBEDDINGS_URL": servers.tei.url,
        "RAG_QUERY_TIMEOUT_SECONDS": "30",
    }  # fmt: skip
    done = subprocess.run(
        [slim_python, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=100, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "[1] Archive: Maintenance | Source: chunks.pdf | Page: 1 | Score: 1.00 (cosine)" in done.stdout
    assert f"   {HEATING[0]}" in done.stdout
    assert "Not searched: Plans (its collection does not exist)" in done.stdout
    assert "Plain" not in done.stdout
    assert done.stdout.endswith("64 numbers\n")
