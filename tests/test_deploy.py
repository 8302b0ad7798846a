"""The files of `deploy/` are sound, as far as that shows without a container engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest
import yaml

from docs.commands import commands, subcommands
from ragistry.cli.demo import COLLECTIONS
from ragistry.config.problems import Problems
from ragistry.config.resolve import resolve, store_entry
from ragistry.stores.registry import choose_store
from tests.conftest import ROOT
from tests.page_server import site

DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"


def instructions(name: str) -> list[str]:
    """What stands after an instruction of the Dockerfile, lines joined."""
    lines = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [line.removeprefix(f"{name} ").strip() for line in lines if line.startswith(f"{name} ")]


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def run(*words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)], cwd=cwd, capture_output=True, text=True, check=False, timeout=100, stdin=subprocess.DEVNULL
    )


def test_dockerfile_passes_its_linter() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    if not linter.exists():
        pytest.skip("hadolint is installed on Linux only")
    done = run(linter, "--failure-threshold", "style", DOCKERFILE)
    assert (done.returncode, done.stdout) == (0, "")


def test_compose_file_fits_the_schema_of_compose() -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    done = run(sys.executable, "-m", "check_jsonschema", *schema, DEPLOY / "compose.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_file_names_only_volumes_services_and_variables_that_there_are() -> None:
    found = compose()
    mounts = [mount.partition(":")[0] for service in found["services"].values() for mount in service["volumes"]]
    assert sorted(mounts) == sorted(found["volumes"])
    needed = {name for service in found["services"].values() for name in service.get("depends_on", ())}
    assert needed <= found["services"].keys()
    assert all("healthcheck" in found["services"][name] for name in needed)
    variables = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text(encoding="utf-8")))
    example = (DEPLOY / "example.env").read_text(encoding="utf-8")
    assert variables == set(re.findall(r"^#? ?([A-Z_]+)=", example, flags=re.MULTILINE))
    build = found["services"]["server"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DOCKERFILE


def test_configuration_of_the_store_is_valid_and_names_the_services(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    shutil.copy(DEPLOY / "vector_stores.yaml", tmp_path / "config")
    problems = Problems()
    choice = choose_store(store_entry(tmp_path, resolve(tmp_path, environ={})), problems)
    assert problems.lines == []
    database = urlsplit(choice.config["url"])
    service = compose()["services"][database.hostname]["environment"]
    assert (choice.use, database.path[1:]) == ("postgres", service["POSTGRES_DB"])
    assert database.username == service["POSTGRES_USER"]


def test_no_service_is_reachable_from_other_machines_and_no_file_has_a_password() -> None:
    ports = [port for service in compose()["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for path in DEPLOY.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^[ #]*\w*(PASSWORD|SECRET|TOKEN|KEY)\w* *[=:] *(?!\$\{)[^ \n]", text, re.MULTILINE), path
        assert not re.search(r"://[^/\s@]+:[^/\s@]+@", text), path


def test_image_runs_a_command_that_there_is_and_not_as_root() -> None:
    [[entry]], [words] = map(json.loads, instructions("ENTRYPOINT")), map(json.loads, instructions("CMD"))
    command = subcommands(commands()[entry])[words[0]]
    assert command.make_context(words[0], words[1:], resilient_parsing=True).params["host"] == "0.0.0.0"
    assert instructions("USER") == ["10001:10001"]
    assert instructions("EXPOSE") == [words[words.index("--port") + 1]]


def test_build_has_every_file_that_the_wheel_needs(tmp_path: Path) -> None:
    context, allowed = tmp_path / "context", DEPLOY / "Dockerfile.dockerignore"
    sources = [word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]]
    assert {f"!{name}" for name in sources} == {
        line for line in allowed.read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    context.mkdir()
    for name in sources:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, context / name)
    done = run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path, cwd=context)
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("ragistry-*.whl")
    with ZipFile(wheel) as built:
        packed = set(built.namelist())
    package = [path.relative_to(context) for path in (context / "ragistry").rglob("*") if path.is_file()]
    assert {path.as_posix() for path in package} <= packed
    fixtures = context / "fixtures"
    shown = [path for name in COLLECTIONS for path in (fixtures / name).rglob("*.*")] + [fixtures / "queries.jsonl"]
    assert {f"ragistry/examples/{path.relative_to(fixtures).as_posix()}" for path in shown} <= packed


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_health_check_asks_the_server(status: int, healthy: bool) -> None:
    [line] = instructions("HEALTHCHECK")
    python, *words = json.loads(line[line.index("CMD ") + 4 :])
    assert python == "python"
    with site() as served:
        served.put("/healthz", "", status=status)
        port = served.url.rpartition(":")[2]
        done = run(sys.executable, *(word.replace(":8000/", f":{port}/") for word in words))
        assert ((done.returncode == 0), served.asked) == (healthy, ["/healthz"])
