"""Say what replaces a name that was removed. This table goes with version 0.3."""

from __future__ import annotations

REMOVED = {
    "technique rm3": "hybrid",
    "technique rocchio": "hybrid",
    "technique adaptive": "hybrid",
    "technique self_rag": "corrective",
    "technique step_back": "multi_query",
    "technique distinct": "newest",
    "technique mmr": "hybrid",
    "technique sentence_window": "parent_document",
    "command ingest --all-text": "`--all`",
    "command skill": "`ragistry mcp skill`",
    "command mcp skill --install": "`ragistry mcp skill FOLDER`",
    "command models": "`ragistry config models`",
    "command demo --ui": "`ragistry ui` in the folder of the demo",
    "command testset make --per-document": "`--limit` alone: questions about one document count as one",
    "command testset make --limited-tokens": "the same command without it: questions of limited tokens are left out",
    "command testset make --seed": "the same command without it: it draws the same queries again",
    "value testset make --kind title": "`--kind description` or `--kind sentence`",
    "value testset make --kind heading": "`--kind description` or `--kind sentence`",
    "command testset check": "`ragistry compare`, which checks a test set first",
    "command testset forget": "`rm .ragistry/questions.jsonl`, the file of the questions in the data folder",
    "command compare --max-minutes": "fewer techniques or a smaller test set",
    "command compare --engine": "`ragistry ingest --engine` for the work that takes long",
    "command compare --ray-address": "`ragistry ingest --ray-address` for the work that takes long",
    "command compare --salt": "the same command without it: names are hidden in one way",
    "command compare --record": "`--answers FILE`, which keeps and reads the answers",
    "command compare --replay": "`--answers FILE`, which keeps and reads the answers",
    "command compare FILE": "`ragistry gate A.json B.json`",
    "command compare --gate": "`ragistry gate A.json B.json`",
    "command compare --plan": "`ragistry plan REPORT.json`",
    "command compare --drop-query": "the same command without it: a document with the id of a query is dropped",
    "command compare --show-questions": "the ids of the report, which lead to the texts in the file of queries",
    "command compare --cache": "the same command without it: the workspace keeps indexes",
    "command route --fit": "`margin` in techniques.yaml, with values compared by `ragistry compare --grid`",
    "command route --evaluate": "`ragistry compare --queries`",
    "name ragistry.evaluation.recording": "compare(answers=FILE)",
    "name ragistry.evaluation.replaying": "compare(answers=FILE)",
    "name ragistry.evaluation.changed": "gate, whose table and others say what changed",
    "name ragistry.evaluation.read_topics": "read_beir or read_ir_datasets",
    "name ragistry.evaluation.write_topics": "write_beir",
    "name ragistry.tools.langchain.LibraryVectorStore": "the recipe of docs/howto/frameworks.md",
}
"""What replaces a technique, a command, an option of a command or a value of one, or a public name of Python."""


def removed(kind: str, name: str) -> str:
    """Return one line that says that a name was removed and what replaces it; empty for other names."""
    successor = REMOVED.get(f"{kind} {name}")
    return f"{name!r} was removed in 0.2; use {successor}" if successor else ""


def no_attribute(module: str, name: str) -> AttributeError:
    """Make the error for a name that a module does not have, with what replaces one that it had."""
    line = removed("name", f"{module}.{name}")
    return AttributeError(line or f"module {module!r} has no attribute {name!r}")
