"""Pages of a repository: code is recognized however it is marked, and marks of the generator are removed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragistry.chunking.chunker import chunk_extracted
from ragistry.errors import ExtractionError
from ragistry.library.repositories.page import cleaned, read_page
from ragistry.readers.markdown import outline
from tests.messages import refused


def page(text: str) -> str:
    return read_page(text.encode(), "page.md").text


def contexts(text: str) -> list[str]:
    return [section.context for section in outline(page(text)).sections]


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ("{{< highlight bash >}}\n# a\nb\n{{< /highlight >}}", "```bash\n# a\nb\n```"),
        (
            '{{% highlight go-html-template "linenos=table" %}}\n# a\n{{% /highlight %}}',
            "```go-html-template\n# a\n```",
        ),
        ("{{<highlight sh>}}# a\n{{</highlight>}}", "```sh\n# a\n```"),
        ("{{< highlight sh >}}# a{{< /highlight >}}", "```sh\n# a\n```"),
        ("{{< code-toggle file=hugo >}}\n# a\n[b]\n{{< /code-toggle >}}", "```\n# a\n[b]\n```"),
        ("{{< code-toggle copy=true >}}\na\n---\n{{< / code-toggle >}}", "```\na\n---\n```"),
        ("{{< highlight md >}}\n```\n# a\n{{< /highlight >}}", "````md\n```\n# a\n````"),
        ("{{< highlight html >}}\n<!-- # a -->\n{{< /highlight >}}", "```html\n<!-- # a -->\n```"),
        ("{{< highlight md >}}\n{{</* param */>}}\n{{< /highlight >}}", "```md\n{{< param >}}\n```"),
        ("1. {{< highlight sh >}}\n   # a\n   {{< /highlight >}}", "1. ```sh\n   # a\n   ```"),
        ("> {{< highlight sh >}}\n> # a\n> {{< /highlight >}}", "> ```sh\n> # a\n> ```"),
        ("Run {{< highlight sh >}}\n# a\n{{< /highlight >}} now.", "Run \n```sh\n# a\n```\n now."),
    ],
)
def test_code_is_in_a_fence(marked: str, shown: str) -> None:
    assert page(f"# Guide\n\n{marked}\n\n## Next\n\nText.") == f"# Guide\n\n{shown}\n\n## Next\n\nText."
    assert contexts(f"# Guide\n\n{marked}\n\n## Next\n\nText.") == ["Guide", "Guide > Next"]
    prose = "A sentence. " * 20
    long = f"# Before\n\n{prose}\n\n# Code\n\n{prose}\n\n{marked}\n\n# Next\n\n{prose}"
    [before, code, after] = chunk_extracted(read_page(long.encode(), "page.md"), 330)
    assert [chunk.metadata["has_code"] for chunk in (before, code, after)] == [False, True, False]
    assert after.metadata["heading_context"] == "Next"


@pytest.mark.parametrize(
    "text",
    [
        "```\n    in a fence\n\n    still\n```",
        "```md\n{{< highlight sh >}}\n# shown\n{{< /highlight >}}\n```",
    ],
)
def test_text_without_code_and_code_in_fences_do_not_change(text: str) -> None:
    assert cleaned(text) == text


def test_code_within_a_line_stays_in_the_line() -> None:
    assert page('Use {{< highlight go "hl_inline=true" >}}x := 1{{< /highlight >}} here.') == "Use `x := 1` here."


def test_shortcode_without_an_end_removes_only_its_mark() -> None:
    text = (
        "{{< code-toggle config=markup />}}\n\n## One\n\n{{< highlight sh >}}\n\n## Two\n\n{{< /code-toggle >}}\n\nEnd."
    )
    assert contexts(text) == ["One", "Two"]
    assert "{{" not in page(text)


def test_comment_is_removed_with_the_code_in_it() -> None:
    text = "One.\n\n<!--\n{{< highlight sh >}}\n# a\n{{< /highlight >}}\n\n```\n# b\n```\n-->\n\nTwo. <!-- no end"
    assert page(text).split() == ["One.", "Two.", "<!--", "no", "end"]


def test_code_of_real_pages_is_recognized(data: Path) -> None:
    pattern = re.compile(r"\{\{<\s*code-toggle[^>]*(?<!/)>\}\}(.*?)\{\{<\s*/\s*code-toggle", re.DOTALL)
    blocks = 0
    for path in (data / "docs-hugo" / "configuration").rglob("*.md"):
        content = path.read_bytes()
        text = read_page(content, path.name).text
        sketch = outline(text)
        for match in pattern.finditer(content.decode()):
            blocks += 1
            at = text.index(match[1].strip())
            assert sketch.has_code(at, at + len(match[1].strip())), (path, match[1])
    assert blocks > 30


def test_marks_of_the_generator_are_removed() -> None:
    text = (
        'Use {{< ref "x.md" >}}this.\n<!-- not\nshown -->\n{{% note %}}Mind the gap.{{% /note %}}\n'
        "Write `{{</* ref */>}}`.\n\n```html\n<!-- kept -->\n{{%/* note */%}}\n```\n"
    )
    assert cleaned(text) == (
        "Use this.\n\nMind the gap.\nWrite `{{< ref >}}`.\n\n```html\n<!-- kept -->\n{{% note %}}\n```\n"
    )
    for mark in ("<!-- ", "{{< ", "{{</* "):  # a mark that is never closed costs little
        assert cleaned(mark * 20_000).startswith(mark.strip()[:3])


def test_title_is_that_of_the_front_matter_or_of_the_first_heading() -> None:
    found = read_page(b"Before.\r\n\r\n# The title\r\n\r\nText.\r\n", "a.md")
    assert found.metadata == {"title": "The title", "heading_context": "The title", "section": "The title"}
    assert "\r" not in found.text
    given = read_page(b"---\ntitle: Given\nsection: Guides\n---\n# Other\n", "a.md").metadata
    assert (given["title"], given["section"], given["heading_context"]) == ("Given", "Guides", "Given")
    with refused(ExtractionError, "a.md"):
        read_page(b"\0\1\2", "a.md")
