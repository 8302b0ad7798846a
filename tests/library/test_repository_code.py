"""Pages of a repository: code is recognized however it is marked, and marks of the generator are removed."""

from __future__ import annotations

import re
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.chunking.chunker import chunk_extracted
from ragistry.errors import ExtractionError
from ragistry.library.repositories.code import fenced, indented_code
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
        ("<pre>\n# a\n</pre>", "```\n# a\n```"),
        ('<PRE class="x"><code class="y"># a &lt;b&gt; <b>c</b> <d></code></PRE>', "```\n# a <b> c <d>\n```"),
        ("<div>\n  <pre># a</pre></div>", "<div>\n  ```\n# a\n  ```\n</div>"),
        ("So:\n\n    # a\n\n      b\n\nThen.", "So:\n\n```\n# a\n\n  b\n```\n\nThen."),
        ("\t# a\tb", "```\n# a\tb\n```"),
        ("- One\n\n      # a\n\n  two", "- One\n\n  ```\n  # a\n  ```\n\n  two"),
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
        "- One\n\n    goes on",
        "1. One\n\n    goes on\n\n    - Two\n\n        goes on",
        "[^1]: A note\n\n    goes on",
        "Term\n: Meaning\n\n    goes on",
        "A paragraph\n    goes on",
        "```\n    in a fence\n\n    still\n```",
        "```md\n{{< highlight sh >}}\n# shown\n{{< /highlight >}}\n```",
        "~~~\n<pre>\n# shown\n</pre>\n~~~",
        "Write `<pre>` or <pre> and go on",
        "<pre>\nis never closed",
    ],
)
def test_text_without_code_and_code_in_fences_do_not_change(text: str) -> None:
    assert fenced(text) == text


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


LINES = ["text", "- item", "1. item", "10. ten", "  - two", "    - four", "- ", "* * *", "# head", "```", "    code"]
LINES += ["      six", "  two", "   three", "        eight", "\tcode", "  \tcode", "", "", ""]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=9))
def test_indented_code_is_code_in_commonmark(lines: list[str]) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    tokens = markdown_it.MarkdownIt("commonmark").parse("\n".join(lines))
    code = {number for token in tokens if token.type == "code_block" for number in range(*token.map)}
    sketch = outline("\n".join(lines))
    ends = accumulate(len(line) + 1 for line in lines)
    in_fence = [sketch.has_code(end - len(line) - 1, end) for line, end in zip(lines, ends, strict=True)]
    assert {number for number, _ in indented_code(lines, in_fence)} <= code


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
