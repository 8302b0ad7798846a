"""Results that do not fit their query are recognised, and nothing is said without evidence."""

from __future__ import annotations

import pytest

from ragistry.techniques.weakness import FIRST, WINDOW, is_weak
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import Document, ScoreKind, StageScore
from tests.techniques.doubles import MINILM

TEA = "Green tea is steeped in water of eighty degrees. Black tea is steeped in boiling water."


def found(*contents: str, language: str = "en", **scores: float) -> list[Document]:
    """Return documents of these contents, all with these scores."""
    kinds: dict[str, ScoreKind] = {"cosine": "cosine", "bm25": "bm25", "rank": "rank"}
    stages = tuple(StageScore("base", kinds[kind], value) for kind, value in scores.items())
    return [Document(content, {"language": language}, 1.0, content[:9], stages) for content in contents]


@pytest.mark.parametrize(
    ("query", "documents", "weak"),
    [
        ("how hot is the water for green tea?", found(TEA, bm25=3.0), False),
        ("which tea bags were sold by the shipping company last year?", found(TEA, bm25=3.0), True),
        ("zzzqqq xyzzy", found(TEA, cosine=0.2), True),
        ("temperature of an infusion", found(TEA, cosine=0.7), False),  # other words, the same meaning
        ("temperature of an infusion", found(TEA, cosine=0.2, bm25=1.0), True),
        ("green tea", found(*["Rain."] * (FIRST - 1), TEA, cosine=0.1), False),
        ("green tea", found(*["Rain."] * FIRST, TEA, cosine=0.1), True),  # only the first passages count
        ("tea, rain, water, hail", found(f"tea {'x ' * WINDOW} rain {'x ' * WINDOW} water", bm25=1.0), True),
        ("And how long does it take?", found(TEA, cosine=0.1, bm25=1.0), False),  # says nothing by itself
        ("and why do they do that with the black one?", found(TEA, cosine=0.1, bm25=1.0), False),
        ("And who first made it in degrees Celsius?", found(TEA, cosine=0.2, bm25=1.0), False),
        ("And who first made it in degrees Celsius?", found("Rain.", cosine=0.2, bm25=1.0), True),
        ("And which oolong infusion is that?", found(TEA, cosine=0.2, bm25=1.0), True),
        (f"{TEA} Oolong is rolled, and white tea is only dried, in the shade.", found(TEA, bm25=9.0), False),
        ("what is it?", found("It is tea.", bm25=1.0), False),
        ("?!", found(TEA, cosine=0.0), False),
        ("LNT-1042", found("The part LNT-1042 is out of stock.", bm25=1.0), False),
        ("0800123456", found("Call 0800/123-456 now.", bm25=1.0, cosine=0.1), False),
        ("10uF set_max_attempts", found("10 µF; setMaxAttempts", bm25=1.0), False),
        ("0800123457", found("Call 0800/123-456 now.", bm25=1.0, cosine=0.1), True),
        ("緑茶の温度", found("緑茶は八十度の湯で淹れる。", language="ja", bm25=1.0), False),
        ("Wie heiß ist das Wasser?", found("Das Wasser ist heiß.", language="de", bm25=1.0), False),
        ("zzzqqq xyzzy", [], False),  # there is nothing to say it of
    ],
)
def test_results_are_weak_if_few_words_are_near_each_other_and_no_vector_is(
    query: str, documents: list[Document], weak: bool
) -> None:
    assert is_weak(query, documents, MINILM, "english") is weak


def test_nothing_is_said_without_evidence() -> None:
    assert not is_weak("zzzqqq xyzzy", found(TEA), MINILM, "english")
    assert not is_weak("zzzqqq xyzzy", found(TEA, rank=1.0), MINILM, "english"), "a technique with scores of its own"
    assert not is_weak("zzzqqq xyzzy", found(TEA, cosine=0.1), HashingEmbedder(), "english"), "an unknown model"


class Unread(str):
    """A text that must not be divided into words."""

    def split(self, *_: object, **__: object) -> list[str]:
        raise AssertionError("the text was analysed")


@pytest.mark.parametrize(
    ("query", "documents", "weak"),
    [
        ("temperature of an infusion", found(Unread(TEA), cosine=0.7), False),  # the cosine is enough
        ("temperature of an infusion", found(Unread(TEA), cosine=0.7, bm25=1.0), False),
        ("temperature of an infusion", found(Unread(TEA), cosine=-0.1), True),  # no share of words would be
        ("green tea", found(TEA, Unread("Rain."), bm25=1.0), False),  # the first passage is enough
    ],
)
def test_no_text_is_analysed_that_cannot_change_the_answer(query: str, documents: list[Document], weak: bool) -> None:
    assert is_weak(query, documents, MINILM, "english") is weak
