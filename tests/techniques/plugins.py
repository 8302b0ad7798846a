"""Techniques as a user would write them, good and bad, for the tests of the registry."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ragistry.types import Document, ranked


class Fixed:
    """Return the texts of the configuration, whatever is asked."""

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid")
        texts: list[str]
        collection: str = "a"

    def __init__(self, config):
        self.config = config

    def retrieve(self, query, *, top_k=None, where=None):
        documents = [
            Document(text, {"collection": self.config.collection}, 1 - number / 10, id=text)
            for number, text in enumerate(self.config.texts)
        ]
        return documents[:top_k]


class Shout:
    """Search with the query in capitals."""

    def __init__(self, config, *, base):
        self.base = base

    def retrieve(self, query, **options):
        return self.base.retrieve(query.upper(), **options)


class Echo:
    """Return the query itself."""

    def __init__(self, config):
        self.config = config

    def retrieve(self, query, **options):
        return [Document(query, dict(self.config), 1.0, id="echo")]


class Open:
    """Search without the condition."""

    def __init__(self, config, *, base):
        self.base = base

    def retrieve(self, query, *, top_k=None, where=None):
        return self.base.retrieve(query, top_k=top_k)


class Nothing:
    """Ask the base, and return nothing."""

    def __init__(self, config, *, base):
        self.base = base

    def retrieve(self, query, **options):
        self.base.retrieve(query, **options)
        return []


class Joined:
    """Return what all the bases return."""

    def __init__(self, config, *, bases):
        self.bases = bases

    def retrieve(self, query, **options):
        return ranked(document for base in self.bases for document in base.retrieve(query, **options))


class Everything:
    """Take whatever resources there are."""

    def __init__(self, config, **resources):
        self.resources = resources

    def retrieve(self, query, **options):
        return [Document(" ".join(sorted(self.resources)), {}, 1.0)]


class Scored:
    """Return a document with the score that stands for the store."""

    def __init__(self, config, *, store):
        self.store = store

    def retrieve(self, query, **options):
        return [Document(query, {}, self.store, id="d")]


class NeedsGenerator:
    """Answer with what the generator makes of the query."""

    def __init__(self, config, *, generator):
        self.generator = generator

    def retrieve(self, query, **options):
        return [Document(self.generator.generate(query), {}, 1.0)]


class NeedsTheMoon:
    """Ask for what is not a resource."""

    def __init__(self, config, *, moon):
        self.moon = moon

    def retrieve(self, query, **options):
        return []


class TakesTargets:
    """Choose among targets, and build on no other technique."""

    def __init__(self, config, *, targets):
        self.targets = targets

    def retrieve(self, query, **options):
        return []


class NoWhere:
    """Take no condition."""

    def __init__(self, config):
        pass

    def retrieve(self, query, top_k=None):
        return []


class NoRetrieve:
    """Lack the method."""

    def __init__(self, config):
        pass


class Tuples:
    """Return pairs in place of documents."""

    def __init__(self, config):
        pass

    def retrieve(self, query, **options):
        return [("text", 0.5)]


not_a_class = Fixed(Fixed.Config(texts=["a"]))
