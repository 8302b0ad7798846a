"""The import statements of a Python file, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import resolve_name


@lru_cache(maxsize=2_000)
def imported(source: bytes, package: str) -> tuple[tuple[str, ...], ...]:
    """The possible module names of each import, the more likely first.

    ``package``: that of the file, empty without one. Returns nothing for a file that is not Python.
    """
    try:
        return tuple(_imports(ast.parse(source), package))
    except (SyntaxError, ValueError, ImportError):  # the last: a dot too many
        return ()


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[str, ...]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            origin = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
            yield from ((f"{origin}.{alias.name}", origin) for alias in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _imports(node, package)
