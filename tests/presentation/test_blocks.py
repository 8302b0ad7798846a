"""Passages become blocks: Markdown by its marks, lines of PDFs and plain texts as paragraphs again."""

from __future__ import annotations

import pytest

from ragistry.presentation import PassageBlock, blocks_of

MARKDOWN = """\
## Install `tool`

Run **this** as *root*, see [the manual](https://example.org) or [the guide][guide]:

```sh
pip install tool
```

1. First
2. Second
   - below it

> [!WARNING]
> Mind the gap.

| key | value |
| --- | --- |
| a | `b` |

{{< note >}}Text in a shortcode.{{< /note >}}

<details><summary>More</summary>
Hidden words.
</details>
"""


def of_markdown(text: str) -> list[PassageBlock]:
    return blocks_of(text, {"source_file": "guide/page.md"})


def test_markdown_becomes_blocks() -> None:
    blocks = of_markdown(MARKDOWN)
    assert [(block.kind, block.text) for block in blocks] == [
        ("heading", "Install tool"),
        ("paragraph", "Run this as root, see the manual or the guide:"),
        ("code", "pip install tool"),
        ("item", "First"),
        ("item", "Second"),
        ("item", "below it"),
        ("quote", "Warning: Mind the gap."),
        ("row", "key │ value"),
        ("row", "a │ b"),
        ("paragraph", "Text in a shortcode."),
        ("paragraph", "More Hidden words."),
    ]
    assert [(block.marker, block.depth) for block in blocks if block.kind == "item"] == [("1.", 0), ("2.", 0), ("•", 1)]
    styled = {block.text[start:end]: name for block in blocks for start, end, name in block.styles}
    assert styled == {"tool": "code", "this": "strong", "root": "emphasis", "b": "code"}


def test_a_passage_that_begins_or_ends_inside_a_structure_is_read() -> None:
    assert [block.text for block in of_markdown("end of a sentence.\n\n```\nopen code")] == [
        "end of a sentence.",
        "open code",
    ]
    assert of_markdown("") == []
    assert [block.text for block in of_markdown("[guide]: /docs/guide")] == ["[guide]: /docs/guide"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "paper.pdf",
            "The Transformer uses multi-head attention in three\ndifferent ways, with a state-of-the-\nart encoder.\n\n"
            "In addition to attention sub-layers, each of the\nlayers contains a network.",
            [
                "The Transformer uses multi-head attention in three different ways, with a state-of-the-art encoder.",
                "In addition to attention sub-layers, each of the layers contains a network.",
            ],
        ),
        (
            "paper.pdf",  # a short line before a capital ends a paragraph
            "Conclusion\nThe work that we presented here shows a lot of\nthings that nobody had expected.",
            ["Conclusion", "The work that we presented here shows a lot of things that nobody had expected."],
        ),
        (
            "list.txt",
            "Needed:\n- a spade,\n  clean\n- soil\n2) water\n\n    $ run it\n    $ again",
            ["Needed:", "item • a spade, clean", "item • soil", "item 2) water", "code      $ run it\n    $ again"],
        ),
    ],
)
def test_lines_of_a_pdf_or_a_plain_text_become_blocks(name: str, text: str, expected: list[str]) -> None:
    blocks = blocks_of(text, {"source_file": name})
    assert [
        block.text if block.kind == "paragraph" else f"{block.kind} {block.marker} {block.text}" for block in blocks
    ] == expected


@pytest.mark.parametrize("name", ["page.md", "page.txt"])
def test_any_text_has_blocks(name: str) -> None:
    for text in ("\x00\x1b[31m", "a" * 10_000, "[" * 500, "> " * 300, "|" * 100, "\n\n\n", "{{<" * 100, "🙂 ﬁ 中文"):
        for block in blocks_of(text, {"source_file": name}):
            assert all(0 <= start < end <= len(block.text) for start, end, _ in block.styles)
