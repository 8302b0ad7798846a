"""A pipeline as a Mermaid flowchart, which GitHub and most documentation tools render."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ragistry.pipelines.graph import END


def flowchart(steps: Mapping[str, Mapping[str, str]], start: str) -> str:
    """``steps``: for every step the next one, or `END`, by action; ``start``: the step that runs first."""
    ids = {name: f"s{number}" for number, name in enumerate(steps)} | {END: "done"}
    lines = ["flowchart TD", '    start(["START"])']
    lines += [f'    {ids[name]}["{_label(name)}"]' for name in steps]
    lines += [f'    done(["{END}"])', f"    start --> {ids[start]}"]
    lines += [
        f'    {ids[name]} -->|"{_label(action)}"| {ids[target]}'
        for name, on in steps.items()
        for action, target in on.items()
    ]
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    """Text with every character that could be markup escaped as its number."""
    return re.sub(r"[^\w .,:/()-]", lambda match: f"#{ord(match[0])};", text)
