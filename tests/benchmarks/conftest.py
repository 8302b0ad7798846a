"""Benchmarks stand in the repository, not in a source distribution."""

from __future__ import annotations

from pathlib import Path

collect_ignore_glob = [] if (Path(__file__).resolve().parents[2] / "benchmarks").is_dir() else ["test_*.py"]
