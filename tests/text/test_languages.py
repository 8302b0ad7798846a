from __future__ import annotations

import pytest

from ragistry.errors import ConfigError
from ragistry.text.languages import analysis_language, canonical_language, language_name
from tests.messages import refused


@pytest.mark.parametrize(
    ("code", "name"),
    [("en", "english"), ("de", "german"), ("zh", "chinese"), ("uk", "none"), ("yo", "none"), ("", "none")],
)
def test_a_detected_language_has_the_analysis_of_its_stemmer_or_none(code: str, name: str) -> None:
    assert analysis_language(code) == name
    assert canonical_language(name) == name


def test_a_language_is_named_in_messages_also_where_it_has_no_analysis() -> None:
    assert [language_name(code) for code in ("de", "uk", "xyz")] == ["German", "Ukrainian", "'xyz'"]


def test_a_language_without_analysis_is_refused_as_a_setting() -> None:
    with refused(ConfigError):
        canonical_language("ukrainian")
