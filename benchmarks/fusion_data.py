"""Test sets for fusion: large shared sets, and stand-ins for texts and queries that a model does not know."""

from __future__ import annotations

import ast
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.quality import DATA
from ragistry.evaluation import Dataset, Text, read_beir

LARGEST, SAMPLE = 1_500, 1_000
"""Number of documents above which a set is sampled, and of the sample: all relevant ones, and others by chance."""
PEOPLE = ("cranfield", "cisi", "cacm", "scifact", "npl", "hotpotqa-pooled500")
"""Sets of at least 1,000 passages with people's questions in English."""
STAND_INS = (
    "miracl-yo", "xquad-de", "xquad-es", "xquad-zh", "cranfield, vectors of noise", "xquad-en, vectors of noise",
    "cranfield, two words", "scifact, two words", "docstrings to code",
)  # fmt: skip
NOISE, TWO_WORDS, CODE = ", vectors of noise", ", two words", "docstrings to code"
FUNCTIONS, DOCSTRINGS = 1_200, 300
SEED = 7


def read_set(name: str) -> Dataset:
    """Return a set with its judged queries, sampled if it is large. Raises `FileNotFoundError` if it is missing."""
    if name == CODE:
        return code_pairs()
    folder = DATA / name.removesuffix(NOISE).removesuffix(TWO_WORDS)
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    found = sampled(read_beir(folder))
    return two_words(found) if name.endswith(TWO_WORDS) else found


def sampled(dataset: Dataset) -> Dataset:
    """Keep all relevant documents and as many others as fit, chosen by chance with a fixed seed."""
    if len(dataset.corpus) <= LARGEST:
        return dataset
    relevant = {name for judged in dataset.qrels.values() for name, grade in judged.items() if grade > 0}
    others = [one.id for one in dataset.corpus if one.id not in relevant]
    keep = relevant | set(random.Random(SEED).sample(others, max(0, SAMPLE - len(relevant))))
    qrels = {query: {name: grade for name, grade in of.items() if name in keep} for query, of in dataset.qrels.items()}
    corpus = [one for one in dataset.corpus if one.id in keep]
    return replace(dataset, name=f"{dataset.name}-{SAMPLE}", corpus=corpus, qrels=qrels)


def two_words(dataset: Dataset) -> Dataset:
    """Shorten each query to its two words that the fewest documents have, in their order."""
    having = Counter(word for one in dataset.corpus for word in set(words_of(one.whole)))
    queries = {}
    for query, text in dataset.judged.items():
        words = list(dict.fromkeys(words_of(text)))
        rare = sorted((word for word in words if having[word]), key=lambda word: having[word])[:2]
        queries[query] = " ".join(word for word in words if word in rare) or text
    return replace(dataset, queries=queries, qrels={query: dataset.qrels[query] for query in queries})


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def code_pairs() -> Dataset:
    """Pair first sentences of docstrings in Python's standard library with the code of their functions."""
    pairs: dict[str, tuple[str, str]] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if not {"test", "tests", "site-packages", "idlelib", "lib2to3"}.intersection(path.parts):
            pairs |= {f"{path.stem}:{line}": pair for line, *pair in functions_of(path)}
    unique = {sentence: name for name, (sentence, _) in reversed(pairs.items())}
    names = random.Random(SEED).sample(sorted(unique.values()), FUNCTIONS)
    corpus = [Text(name, "", pairs[name][1]) for name in names]
    asked = {name: pairs[name][0] for name in names[:DOCSTRINGS]}
    return Dataset("docstrings to code", corpus, asked, {name: {name: 1} for name in asked})


def functions_of(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the first sentence of the docstring and the code without it for each function of a file."""
    source = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and len(node.body) > 1 and (said := ast.get_docstring(node)):
            sentence = " ".join(said.split("\n\n")[0].split()).split(". ")[0]
            if 4 <= len(sentence.split()) <= 30:
                node.body = node.body[1:]
                yield node.lineno, sentence, ast.unparse(node)
