"""Archives need only the slim package `chromadb-client`: nothing of what a Chroma server needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, full_run
from tests.tools.archive_servers import HEATING

pytest_plugins = ["tests.tools.archive_fixture"]

CLIENT = "chromadb-client==1.5.9"
SCRIPT = """
import sys, warnings
warnings.simplefilter("error")
absent = ("onnxruntime tokenizers chromadb_rust_bindings tantivy pypdfium2 pocketflow uvicorn typer").split()
sys.modules.update(dict.fromkeys(absent))  # they cannot be imported, where they are installed
from ragistry.tools.archives import create_archive_search_tool, embed_query, extract_rag_config

assert "chromadb" not in sys.modules
archive = {"name": "Maintenance", "collection_name": sys.argv[1], "embedding_model": sys.argv[2]}
gone = {**archive, "name": "Plans", "collection_name": "not-there"}
plain = {**archive, "name": "Plain", "collection_name": sys.argv[4], "layer": "*"}
config = extract_rag_config({"configurable": {"rag_config": {"archives": [archive, gone, plain]}}})
print(create_archive_search_tool(config).invoke({"query": sys.argv[3], "top_k": 2}))
print(len(embed_query("a", sys.argv[2])), "numbers")
"""


@pytest.fixture(params=["full client", "slim client"] if full_run() else ["full client"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where Python looks for packages first: the slim client hides the full one."""
    if request.param == "full client":
        return str(ROOT)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=0", "--no-deps"]
    done = subprocess.run([*pip, "--target", tmp_path, CLIENT], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install {CLIENT}: {done.stderr[-300:]}")
    return f"{tmp_path}{os.pathsep}{ROOT}"


def test_archives_are_searched_without_the_packages_of_a_server(path, servers):
    archive = servers.archive("Maintenance", HEATING)
    # Made by the full client with its default embedding function, which the slim one could not build.
    servers.client.get_or_create_collection("default-function-unfilled")
    arguments = [archive.collection_name, servers.tei.model, HEATING[0], "default-function-unfilled"]
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1",
        "DOCPROC_CHROMADB_URL": servers.chroma, "DOCPROC_TEI_EMBEDDINGS_URL": servers.tei.url,
        "RAG_QUERY_TIMEOUT_SECONDS": "30",
    }  # fmt: skip
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "[1] Archive: Maintenance | Source: chunks.pdf | Page: 1 | Score: 1.00 (cosine)" in done.stdout
    assert f"   {HEATING[0]}" in done.stdout
    assert "Not searched: Plans (its collection does not exist)" in done.stdout
    assert "Plain" not in done.stdout
    assert done.stdout.endswith("64 numbers\n")
