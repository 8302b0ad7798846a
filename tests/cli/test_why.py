"""``ragistry why``: its exit codes, and what it prints."""

from __future__ import annotations

import pytest

from tests.cli.conftest import TEA, Run
from tests.conftest import Corpus

FILES = {"tea.md": TEA, "coffee.md": "Grind coffee beans coarsely for a French press."}


@pytest.mark.parametrize(
    ("options", "code", "first"),
    [
        (["green tea", "--expect", "tea.md"], 0, "found: result 1 of 2"),
        (["coffee press in water", "--expect", "tea.md", "-k", "1"], 3, "ranked too low: rank 2 in "),
        (["espresso machine", "--expect", "tea.md", "-k", "1"], 3, "no words: "),
        (["green tea", "--expect", "tea.txt"], 1, "not ingested: "),
    ],
)
def test_exit_code_and_first_words(ragistry: Run, corpus: Corpus, options: list[str], code: int, first: str) -> None:
    ragistry("ingest", str(corpus(FILES)), "-c", "notes", "--create", "Notes")
    done = ragistry("why", *options)
    assert (done.code, done.err) == (code, ""), done
    assert done.out.startswith(first), done
    assert max(map(len, done.out.splitlines())) <= 80
    found = ragistry("why", *options, "--json")
    assert (found.code, found.json["cause"]) == (code, first.partition(":")[0].replace("ranked too low", "ranked low"))


def test_place_that_the_source_lacks_is_one_error(ragistry: Run, corpus: Corpus) -> None:
    ragistry("ingest", str(corpus(FILES)), "-c", "notes", "--create", "Notes")
    ragistry("why", "green tea", "--expect", "tea.md:page 7").refused(1, "tea.md", "page 7")
