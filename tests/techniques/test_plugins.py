"""A stranger's package with an entry point is found, used, and cannot break the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

NAME = "ragistry_shout-1.0"
PLUGIN = {
    "ragistry_shout/__init__.py": '''\
class Shout:
    """Search with the query in capitals."""
    def __init__(self, config, *, base):
        self.base = base
    def retrieve(self, query, **options):
        return self.base.retrieve(query.upper(), **options)
''',
    "ragistry_shout/broken.py": "import a_package_that_is_not_there\n",
    f"{NAME}.dist-info/METADATA": "Metadata-Version: 2.1\nName: ragistry-shout\nVersion: 1.0\n",
    f"{NAME}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{NAME}.dist-info/entry_points.txt": """\
[ragistry.techniques]
shout = ragistry_shout:Shout
broken_inside = ragistry_shout.broken:Thing
broken_missing = ragistry_nowhere:Thing
naive = ragistry_shout:Shout
""",
}


def wheel(folder: Path) -> Path:
    """The plugin as its author would publish it."""
    path = folder / f"{NAME}-py3-none-any.whl"
    record = f"{NAME}.dist-info/RECORD"
    with ZipFile(path, "w") as archive:
        for name, text in PLUGIN.items():
            archive.writestr(name, text)
        archive.writestr(record, "".join(f"{name},,\n" for name in [*PLUGIN, record]))
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the path into which pip has installed the plugin."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    package = wheel(tmp_path_factory.mktemp("wheel"))
    subprocess.run([*pip, "--no-index", "--no-deps", "--target", str(site), str(package)], check=True, timeout=100)
    assert (site / f"{NAME}.dist-info" / "INSTALLER").read_text(encoding="utf-8").strip() == "pip"
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
        "from ragistry.techniques.classes import broken_plugins, offers\n"
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
