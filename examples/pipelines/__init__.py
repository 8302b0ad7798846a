"""Typical pipelines, each in at most 20 lines: ``python -m examples.pipelines.NAME [WORKSPACE]``."""
