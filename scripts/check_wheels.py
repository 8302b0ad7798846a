"""Check that every package of constraints.txt has a wheel for the newest Python that pyproject.toml names."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
MISSING = re.compile(r"No matching distribution found for ([^\s;]+)")


def newest_python() -> str:
    """The highest version among the classifiers."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    versions = [line.rpartition(" ")[2] for line in classifiers if re.search(r":: Python :: 3\.\d+$", line)]
    return max(versions, key=lambda version: int(version.partition(".")[2]))


def without_wheel(requirements: list[str], version: str) -> list[str]:
    """Return the requirements that have no wheel for a version of Python on this system.

    Raises:
        RuntimeError: pip fails for another reason, such as no network.
    """
    missing: list[str] = []
    with TemporaryDirectory() as folder:
        while True:
            file = Path(folder, "requirements.txt")
            file.write_text("\n".join(line for line in requirements if line not in missing), encoding="utf-8")
            done = subprocess.run(
                [
                    sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                    f"--python-version={version}", f"--dest={folder}/wheels", f"--requirement={file}",
                ],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return missing
            found = MISSING.search(done.stderr)
            if found is None or found[1] in missing or "Retrying (" in done.stderr:
                raise RuntimeError(done.stderr.strip().splitlines()[-1])
            missing.append(found[1])


def main() -> None:
    """Print the packages without a wheel, and fail if there are any."""
    version = sys.argv[1] if len(sys.argv) > 1 else newest_python()
    requirements = (ROOT / "constraints.txt").read_text(encoding="utf-8").split("\n")
    try:
        missing = without_wheel([line for line in requirements if line], version)
    except RuntimeError as error:
        sys.exit(f"error: {error}")
    if missing:
        sys.exit(f"error: no wheel for Python {version}: {', '.join(missing)}; choose other versions, or add a marker")
    print(f"every package of constraints.txt has a wheel for Python {version}")


if __name__ == "__main__":
    main()
