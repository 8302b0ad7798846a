"""``ragistry why``: its exit codes, and what it prints."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cli.conftest import TEA, Run
from tests.conftest import Corpus

FILES = {"tea.md": TEA, "coffee.md": "Grind coffee beans coarsely for a French press."}


@pytest.fixture
def why(ragistry: Run, corpus: Corpus) -> Run:
    ragistry("ingest", str(corpus(FILES)), "-c", "notes", "--create", "Notes")
    return partial(ragistry, "why")


def test_exit_code_and_first_words(why: Run) -> None:
    for options, code, first in (
        (["green tea", "--expect", "tea.md"], 0, "found: result 1 of 2"),
        (["coffee press in water", "--expect", "tea.md", "-k", "1"], 3, "ranked too low: rank 2 in "),
        (["espresso machine", "--expect", "tea.md", "-k", "1"], 3, "no words: "),
        (["green tea", "--expect", "tea.txt"], 1, "not ingested: "),
    ):
        done = why(*options)
        assert (done.code, done.err) == (code, ""), done
        assert done.out.startswith(first), done
        assert max(map(len, done.out.splitlines())) <= 80
        found = why(*options, "--json")
        cause = first.partition(":")[0].replace("ranked too low", "ranked low")
        assert (found.code, found.json["cause"]) == (code, cause)
    why("green tea", "--expect", "tea.md:page 7").refused(1, "tea.md", "page 7")
