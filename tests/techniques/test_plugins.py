"""A stranger's package with an entry point is found, used, and cannot break the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "ragistry-shout"
version = "1.0"
[project.entry-points."ragistry.techniques"]
shout = "ragistry_shout:Shout"
broken_inside = "ragistry_shout.broken:Thing"
broken_missing = "ragistry_nowhere:Thing"
naive = "ragistry_shout:Shout"
""",
    "ragistry_shout/__init__.py": '''\
class Shout:
    """Search with the query in capitals."""
    def __init__(self, config, *, base):
        self.base = base
    def retrieve(self, query, **options):
        return self.base.retrieve(query.upper(), **options)
''',
    "ragistry_shout/broken.py": "import a_package_that_is_not_there\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin, installed as pip would install it: the package and its metadata in a folder of the path."""
    site = tmp_path_factory.mktemp("site")
    (site / "ragistry_shout").mkdir()
    for name, text in PLUGIN.items():
        if name.startswith("ragistry_shout/"):
            (site / name).write_text(text, encoding="utf-8")
    info = site / "ragistry_shout-1.0.dist-info"
    info.mkdir()
    points = PLUGIN["pyproject.toml"].partition('[project.entry-points."ragistry.techniques"]\n')[2]
    (info / "entry_points.txt").write_text("[ragistry.techniques]\n" + points.replace('"', ""), encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ragistry-shout\nVersion: 1.0\n", encoding="utf-8")
    return site


def python(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.insert(0, {str(site)!r})\n{code}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path.cwd(), check=False)


def test_a_plugin_is_used_by_its_name(site: Path, tmp_path: Path) -> None:
    (tmp_path / "techniques.yaml").write_text(
        'techniques:\n  echo: {use: "tests.techniques.plugins:Echo"}\n  loud: {use: shout, base: echo}\n'
    )
    done = python(
        site,
        "from ragistry import TechniqueRegistry\n"
        f"print(TechniqueRegistry.load({str(tmp_path / 'techniques.yaml')!r}).get('loud').retrieve('hi')[0].content)",
    )
    assert (done.stdout.strip(), done.returncode) == ("HI", 0), done.stderr


def test_broken_plugins_are_listed_and_the_others_work(site: Path, tmp_path: Path) -> None:
    (tmp_path / "techniques.yaml").write_text(
        'techniques:\n  echo: {use: "tests.techniques.plugins:Echo"}\n  bad: {use: broken_inside}\n'
        '  on_bad: {use: "tests.techniques.plugins:Shout", base: bad}\n'
    )
    done = python(
        site,
        "import json\nfrom ragistry import TechniqueRegistry\n"
        "from ragistry.techniques.catalogue import broken_plugins, offers\n"
        f"r = TechniqueRegistry.load({str(tmp_path / 'techniques.yaml')!r})\n"
        "print(json.dumps([r.names(), r.broken, broken_plugins(), offers()['naive'].distribution]))",
    )
    assert done.returncode == 0, done.stderr
    names, broken, plugins, owner = json.loads(done.stdout)
    assert names == ["echo"]
    assert set(broken) == {"bad", "on_bad"}
    assert "a_package_that_is_not_there" in broken["on_bad"]
    assert set(plugins) == {"broken_inside", "broken_missing"}
    assert "'ragistry-shout'" in plugins["broken_missing"]
    assert owner == "ragistry", "a plugin does not take the name of a built-in technique"
