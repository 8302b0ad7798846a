"""What a shell offers after Tab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_installed_script_completes(tmp_path: Path) -> None:
    asked = {"_RAGISTRY_COMPLETE": "complete_bash", "COMP_WORDS": "ragistry sea", "COMP_CWORD": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name("ragistry")], env=os.environ | asked,
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("search\n", "")
