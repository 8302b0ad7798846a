"""A stranger's package with an entry point is found, used, and cannot break the others."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.messages import check_message

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
    f"{NAME}.dist-info/entry_points.txt": """\
[ragistry.techniques]
shout = ragistry_shout:Shout
broken_inside = ragistry_shout.broken:Thing
broken_missing = ragistry_nowhere:Thing
naive = ragistry_shout:Shout
""",
}


def test_plugins_are_used_by_name_and_broken_ones_do_not_disturb_the_others(tmp_path, corpus):
    site = corpus(PLUGIN, "site")
    path = tmp_path / "techniques.yaml"
    path.write_text("""techniques:
  echo: {use: "tests.techniques.plugins:Echo"}
  loud: {use: shout, base: echo}
  bad: {use: broken_inside}
  on_bad: {use: "tests.techniques.plugins:Shout", base: bad}
""")
    program = f"""
import json, sys
sys.path.insert(0, {str(site)!r})
from ragistry import TechniqueRegistry
from ragistry.techniques.classes import broken_plugins, offers
registry = TechniqueRegistry.load({str(path)!r})
said = registry.get("loud").retrieve("hi")[0].content
print(json.dumps([said, registry.names(), registry.broken, broken_plugins(), offers()["naive"].distribution]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, names, broken, plugins, owner = json.loads(done.stdout)
    assert (said, names) == ("HI", ["echo", "loud"])
    assert set(broken) == {"bad", "on_bad"}
    check_message(broken["on_bad"], "a_package_that_is_not_there")
    assert set(plugins) == {"broken_inside", "broken_missing"}
    check_message(plugins["broken_missing"], "'ragistry-shout'")
    assert owner == "ragistry", "a plugin does not take the name of a built-in technique"
