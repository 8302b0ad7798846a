"""Techniques and nodes as a user would write them, for the tests of pipelines."""

from __future__ import annotations

import pocketflow

from ragistry.types import Document
from ragistry.utils.where import matches, normalise

SHELF = [
    ("granite and basalt", {"page": 1, "collection": "rocks"}),
    ("basalt and olivine", {"page": 2, "collection": "rocks"}),
    ("oak and beech", {"page": 1, "collection": "trees"}),
    ("beech and granite", {"page": 2, "collection": "trees"}),
]


class Words:
    """The texts of the shelf by how many words of the query they have."""

    def __init__(self, config=None):
        self.top_k = (config or {}).get("top_k", 5)

    def retrieve(self, query, *, top_k=None, where=None):
        wanted = None if where is None else normalise(where)
        found = [
            Document(text, metadata, float(score), id=str(number))
            for number, (text, metadata) in enumerate(SHELF)
            if (score := len(set(text.split()) & set(query.split()))) and (wanted is None or matches(wanted, metadata))
        ]
        return sorted(found, key=lambda document: (-document.score, document.id))[: top_k or self.top_k]


class Blind(Words):
    """A technique that does not look at the condition."""

    def retrieve(self, query, *, top_k=None, where=None):
        return super().retrieve(query, top_k=top_k)


class Failing:
    """A technique that raises what it is given."""

    def __init__(self, error):
        self.error = error

    def retrieve(self, query, *, top_k=None, where=None):
        raise self.error


class Rewrite(pocketflow.Node):
    """Put other words in the query's place."""

    actions = frozenset({"default"})

    def __init__(self, old="", new="", max_retries=1):
        super().__init__(max_retries=max_retries)
        self.old, self.new = old, new

    def prep(self, shared):
        return shared["query"]

    def exec(self, query):
        return query.replace(self.old, self.new)

    def post(self, shared, _query, rewritten):
        shared["query"] = rewritten


class Set(pocketflow.Node):
    """Write into the shared mapping and return an action."""

    actions = frozenset({"default", "again"})

    def __init__(self, action=None, **values):
        super().__init__()
        self.action, self.values = action, values

    def post(self, shared, _prepared, _done):
        shared.update(self.values)
        return self.action


class Visits(pocketflow.Node):
    """Count its visits in the shared mapping, and be done after some."""

    actions = frozenset({"again", "done"})

    def __init__(self, enough=3):
        super().__init__()
        self.enough = enough

    def post(self, shared, _prepared, _done):
        shared["visits"] = shared.get("visits", 0) + 1
        return "done" if shared["visits"] >= self.enough else "again"


class Silent(pocketflow.Node):
    """Does not say what it returns."""


class Limited(pocketflow.Node):
    """Made without PocketFlow's own constructor, and only with a number."""

    actions = frozenset({"default"})

    def __init__(self, limit):
        self.limit = limit + 1


class Asking(Rewrite):
    """Let a generator rewrite the query."""

    def __init__(self, *, generator, store=None, name="", suffix=""):
        super().__init__()
        self.generator, self.store, self.name, self.suffix = generator, store, name, suffix

    def exec(self, query):
        return self.generator.generate(query) + self.suffix


def texts(documents):
    return [document.content for document in documents]
