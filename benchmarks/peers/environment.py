"""An environment for each side, made once below a folder and kept, so that none has what another one needs."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import requires
from pathlib import Path
from statistics import median
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
IMPORTS = 5
NOT_OURS = ("pip", "setuptools")
"""What every new environment holds."""


class UnavailableError(Exception):
    """A side that cannot be measured here, and why, on one line."""


class Framework(NamedTuple):
    """A side: its name, the module that is it, and what it needs from a registry."""

    name: str
    module: str
    requirements: tuple[str, ...]


CHROMA = "chromadb==1.5.9"
"""The same in every environment."""

FRAMEWORKS = (
    Framework("Ragistry", "with_ragistry", ()),
    Framework(
        "LangChain",
        "with_langchain",
        (CHROMA, "langchain-chroma", "langchain-classic", "langchain-community", "rank-bm25", "greenlet"),
    ),
    Framework(
        "LlamaIndex",
        "with_llamaindex",
        (CHROMA, "llama-index-core", "llama-index-vector-stores-chroma", "llama-index-retrievers-bm25"),
    ),
    Framework("Haystack", "with_haystack", (CHROMA, "haystack-ai", "chroma-haystack")),
)


class Environment:
    """Where a side runs. Raises `UnavailableError` where it cannot be made within ``timeout`` seconds."""

    def __init__(self, framework: Framework, folder: Path, timeout: float) -> None:
        self.framework = framework
        self.home = folder / framework.module.removeprefix("with_")
        self.python = self.home / "bin" / "python"
        needed = framework.requirements or tuple(_own_requirements())
        mark = sha256("\n".join(needed).encode()).hexdigest()
        done = self.home / "installed"
        if not done.is_file() or done.read_text(encoding="utf-8") != mark:
            shutil.rmtree(self.home, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(self.home)], timeout, framework.name)
            _run([str(self.python), "-m", "pip", "install", "--quiet", *needed], timeout, framework.name)
            done.write_text(mark, encoding="utf-8")

    def command(self, *arguments: str) -> list[str]:
        """How its module is run, in `REPOSITORY`."""
        return [str(self.python), "-m", f"benchmarks.peers.{self.framework.module}", *arguments]

    def import_seconds(self) -> float:
        """Median CPU-seconds to import all that the side uses, above those of an empty Python."""
        module = f"import benchmarks.peers.{self.framework.module}"
        for_all, for_none = (
            [_cpu([str(self.python), "-c", code]) for _ in range(IMPORTS + 1)] for code in (module, "")
        )
        return median(for_all[1:]) - median(for_none[1:])

    def size(self) -> tuple[int, int]:
        """Distributions, and bytes without compiled code; what every environment holds is left out."""
        [site] = self.home.glob("lib/python3*/site-packages")
        installed = [path for path in site.iterdir() if path.name.split("-")[0] not in NOT_OURS]
        distributions = sum(path.suffix == ".dist-info" for path in installed)
        if not self.framework.requirements:  # the checkout is not installed there, but would be
            installed.append(REPOSITORY / "ragistry")
            distributions += 1
        files = (path for top in installed for path in [top, *top.rglob("*")])
        return distributions, sum(p.lstat().st_size for p in files if p.is_file() and p.suffix != ".pyc")

    def versions(self) -> str:
        """What is measured: names and versions of what was asked for; of ours, that it is the checkout."""
        if not self.framework.requirements:
            return "Ragistry as in this checkout"
        names = [requirement.partition("==")[0] for requirement in self.framework.requirements]
        code = "import importlib.metadata as m, json, sys; print(json.dumps([m.version(n) for n in sys.argv[1:]]))"
        found = subprocess.run([str(self.python), "-c", code, *names], check=True, capture_output=True, text=True)
        return ", ".join(f"{name} {version}" for name, version in zip(names, json.loads(found.stdout), strict=True))


def _own_requirements() -> list[str]:
    """What Ragistry needs by itself, as installed with it; the code itself is that of the checkout."""
    return [needed for needed in requires("ragistry") or () if "extra ==" not in needed]


def _run(command: list[str], timeout: float, name: str) -> None:
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout, env=environment)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"{name}: not installed after {timeout:.0f} s; give more with --install-timeout"
        ) from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise UnavailableError(f"{name}: cannot be installed: {last}") from error


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=REPOSITORY)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
