"""reStructuredText as Markdown, as a reader of the built page sees it.

docutils parses it. Roles and directives of Sphinx and others, which docutils does not know, become their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.states import SubstitutionDef
from docutils.readers.standalone import Reader
from docutils.statemachine import StringList
from docutils.transforms import Transform

from ragistry.readers.blocks import Block, ReadDocument
from ragistry.readers.encoding import decode
from ragistry.readers.word_processing import link

_TARGET = re.compile(r"^(.*?)\s*(?<!\\)<[^<>]*>$", re.DOTALL)
_INVISIBLE = frozenset(
    {
        *("index", "highlight", "currentmodule", "py:currentmodule", "meta", "toctree", "contents", "include", "raw"),
        *("literalinclude", "tabularcolumns", "rst-class", "default-domain", "sectionauthor", "codeauthor", "module"),
        *("testsetup", "testcleanup", "plot", "graphviz", "digraph", "only-comment"),
    }
)
"""Directives of which the built page shows nothing, or what is in another file."""
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
}
_LANGUAGE = re.compile(r"[\w+-]+")
_SETTINGS = {
    "file_insertion_enabled": False,  # nothing outside of the file is read
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "_disable_config": True,
    "doctitle_xform": False,
    "docinfo_xform": True,
    "smart_quotes": False,
    "input_encoding": "unicode",
    "line_length_limit": 1_000_000_000,  # by default, a document with a long line is empty
}


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read a document with docutils, and without its errors."""
    _understand_everything()
    decoded = decode(data)
    tree = publish_doctree(decoded.text, reader=_Reader(), settings_overrides=_SETTINGS)
    blocks = [Block(text) for text in _blocks(tree, 1)]
    title = next((node.astext() for node in tree.findall(nodes.title)), "")
    author = next((node.astext() for node in tree.findall(nodes.author)), "")
    created = next((node.astext() for node in tree.findall(nodes.date)), "")
    info = {"Title": title, "Author": author, "Created": created}
    return ReadDocument(blocks, info, warnings=[decoded.warning] if decoded.warning else [])


class _UndefinedSubstitutions(Transform):  # type: ignore[misc]
    """Keep the text of references in substitutions that refer to no substitution; docutils fails at them."""

    default_priority = 219  # just before docutils replaces the references

    def apply(self) -> None:
        for definition in self.document.findall(nodes.substitution_definition):
            for reference in list(definition.findall(nodes.substitution_reference)):
                if reference["refname"].lower() not in self.document.substitution_names:
                    reference.replace_self(nodes.Text(reference.rawsource))


class _Reader(Reader):  # type: ignore[misc]
    def get_transforms(self) -> list[type[Transform]]:
        return [*super().get_transforms(), _UndefinedSubstitutions]


def _understand_everything() -> None:
    """Let docutils take unknown roles and directives for text. Registered in this process only, a reader of files."""
    known_role, known_directive = roles.role, directives.directive
    if getattr(known_role, "of_ragistry", False):
        return

    def role(name: str, language: Any, line: int, _: Any) -> Any:
        found, _messages = known_role(name, language, line, _Silent())
        return found or _text_role, []

    def directive(name: str, language: Any, document: Any) -> Any:
        if name in _INVISIBLE:
            return _Invisible, []
        found, _ = known_directive(name, language, document)
        return _lenient(found) if isinstance(found, type) else found or _TextDirective, []

    role.of_ragistry = True  # type: ignore[attr-defined]
    roles.role, directives.directive = role, directive


class _Silent:
    """A reporter whose messages are discarded."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: nodes.system_message()


def _text_role(name: str, _raw: str, text: str, *_: Any, **__: Any) -> tuple[list[nodes.Node], list[Any]]:
    """Return the title of ``Title <target>``; of ``~package.module.name``, the last part."""
    text = nodes.unescape(text)
    titled = _TARGET.match(text)
    shown = titled[1] if titled and titled[1] else text.lstrip("!")
    if shown.startswith("~"):
        shown = shown[1:].rpartition(".")[2]
    if name.endswith(("guilabel", "menuselection")):
        return [nodes.strong("", shown.replace("&", "").replace("-->", "→"))], []
    literal = name.endswith(("class", "func", "meth", "mod", "attr", "obj", "data", "exc", "file", "command", "option"))
    return [
        nodes.literal("", shown) if literal or name in ("samp", "code", "kbd", "program") else nodes.Text(shown)
    ], []


class _Invisible(Directive):  # type: ignore[misc]
    has_content = True
    optional_arguments = 1_000
    final_argument_whitespace = True
    option_spec: Any = None

    def run(self) -> list[nodes.Node]:
        # docutils drops a substitution without content; one of raw HTML is often a line break.
        if isinstance(self.state, SubstitutionDef):
            return [nodes.Text(" ")]
        shown = _captioned(self)
        if self.name == "contents" and self.arguments:
            shown.append(nodes.rubric("", " ".join(self.arguments)))
        if self.name == "toctree" and (titled := [one for one in map(_TARGET.match, self.content) if one and one[1]]):
            # The titles of entries without one are in other files.
            entries = StringList([f"* `{one[0]}`__" if "://" in one[0] else f"* {one[1]}" for one in titled])
            self.state.nested_parse(entries, self.content_offset, body := nodes.container())
            shown += body.children
        return shown


def _captioned(directive: Directive) -> list[nodes.Node]:
    """Return the option ``caption`` as a node. Directives for code, pictures and tables of contents have it."""
    if not (caption := directive.options.get("caption")):
        return []
    children, _ = directive.state.inline_text(caption, directive.lineno)
    return [nodes.caption("", "", *children)]


class _AnyOption(dict[str, Any]):
    """Accepts every option."""

    def __missing__(self, name: str) -> Any:
        return lambda value: value

    def __contains__(self, name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


@cache
def _lenient(directive: type[Directive]) -> type[Directive]:
    """Return a directive of docutils that accepts the options that others add to it, such as ``:linenos:``."""

    def run(self: Directive) -> list[nodes.Node]:
        return [*_captioned(self), *directive.run(self)]

    return type(directive.__name__, (directive,), {"option_spec": _AnyOption(directive.option_spec or {}), "run": run})


class _TextDirective(Directive):  # type: ignore[misc]
    """An unknown directive: its argument as a paragraph, and its content as part of the document."""

    has_content = True
    optional_arguments = 1_000
    final_argument_whitespace = True
    option_spec = _AnyOption()

    def run(self) -> list[nodes.Node]:
        argument = " ".join(self.arguments).strip()
        found = _captioned(self)
        if self.name in _VERSIONS:
            version, _, rest = argument.partition(" ")
            argument = f"{_VERSIONS[self.name]} {version}" + (f": {rest}" if rest else "")
        if argument and self.name not in ("only", "ifconfig", "tab-set", "tabs", "container"):
            details = [f"{name}: {self.options[name]}" for name in ("type", "value", "default") if name in self.options]
            argument += f" ({', '.join(details)})" if details else ""
            children, _ = self.state.inline_text(argument, self.lineno)
            is_object = ":" in self.name or self.name.endswith(("function", "class", "method", "option", "envvar"))
            found.append(
                nodes.paragraph("", "", nodes.literal("", argument) if is_object else nodes.inline("", "", *children))
            )
        if self.content:
            body = nodes.container()
            self.state.nested_parse(self.content, self.content_offset, body, match_titles=True)
            found += body.children
        return found


_Invisible.option_spec = _AnyOption()


def _blocks(node: nodes.Node, level: int) -> Iterator[str]:
    """Yield the Markdown of each block below a node. ``level``: that of the next heading."""
    for child in node.children:
        yield from _block(child, level)


def _block(node: nodes.Node, level: int) -> Iterator[str]:
    match node:
        case nodes.section():
            yield from _section(node, level)
        case nodes.title() | nodes.rubric() | nodes.caption():
            yield f"**{_inline(node)}**"
        case nodes.subtitle():
            yield f"{'#' * min(6, level)} {_inline(node)}"
        case nodes.literal_block() | nodes.doctest_block() | nodes.math_block():
            yield _code(node)
        case nodes.bullet_list() | nodes.enumerated_list():
            if text := _list(node, level):
                yield text
        case nodes.definition_list() | nodes.option_list() | nodes.field_list() | nodes.docinfo():
            yield from _definitions(node, level)
        case nodes.table():
            yield from _table(node)
        case nodes.line_block():
            yield "\n".join(_lines(node))
        case nodes.block_quote():
            yield from (f"> {text}".replace("\n", "\n> ") for text in _blocks(node, level))
        case nodes.footnote() | nodes.citation():
            label = next((one.astext() for one in node.findall(nodes.label)), "")
            rest = "\n\n".join(
                text for one in node.children if not isinstance(one, nodes.label) for text in _block(one, level)
            )
            yield f"[Note {label}: {rest}]"
        case nodes.image():
            if node.get("alt"):
                yield f"[Picture: {node['alt']}]"
        case nodes.Admonition():
            yield from _admonition(node, level)
        case (
            nodes.comment()
            | nodes.target()
            | nodes.substitution_definition()
            | nodes.system_message()
            | nodes.pending()
        ):
            return
        case nodes.Invisible():
            return
        case nodes.TextElement():
            if text := _inline(node):
                yield text
        case _:
            yield from _blocks(node, level)


def _section(node: nodes.section, level: int) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, nodes.title):
            yield f"{'#' * min(6, level)} {_inline(child)}"
        else:
            yield from _block(child, level + 1)


def _admonition(node: nodes.Node, level: int) -> Iterator[str]:
    if not any(isinstance(child, nodes.title) for child in node.children):
        yield f"**{type(node).__name__.replace('_', ' ').capitalize()}**"
    yield from _blocks(node, level)


def _code(node: nodes.Node) -> str:
    language = next((name for name in node.get("classes", ()) if name != "code" and _LANGUAGE.fullmatch(name)), "")
    text = node.astext()
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text}\n{fence}"


def _list(node: nodes.Node, level: int) -> str:
    first = node.get("start", 1)
    lines = []
    for number, item in enumerate(node.children, first):
        mark = f"{number}. " if isinstance(node, nodes.enumerated_list) else "- "
        text = "\n\n".join(_blocks(item, level)) or ""
        lines.append(mark + text.replace("\n", "\n" + " " * len(mark)))
    return "\n".join(lines)


def _definitions(node: nodes.Node, level: int) -> Iterator[str]:
    for item in node.children:
        terms = [_inline(one) for one in item.children if isinstance(one, nodes.term | nodes.field_name)]
        terms += [one.astext() for one in item.children if isinstance(one, nodes.option_group)]
        classifiers = [_inline(one) for one in item.children if isinstance(one, nodes.classifier)]
        if not terms:  # the parts of `docinfo`
            terms = [type(item).__name__.capitalize()] if isinstance(item, nodes.TextElement) else []
        label = ", ".join(terms) + (f" ({', '.join(classifiers)})" if classifiers else "")
        inner = (nodes.definition, nodes.field_body, nodes.description)
        bodies = [text for one in item.children if isinstance(one, inner) for text in _blocks(one, level)]
        if isinstance(item, nodes.TextElement):
            bodies = [_inline(item)]
        if label and bodies and "\n" not in bodies[0] and not bodies[0].startswith(("- ", "```", "|")):
            yield f"**{label}**: {bodies[0]}"
            yield from bodies[1:]
        else:
            yield f"**{label}**"
            yield from bodies


def _table(node: nodes.table) -> Iterator[str]:
    if (title := next(iter(node.findall(nodes.title)), None)) is not None:
        yield f"**{_inline(title)}**"
    heads = [row for head in node.findall(nodes.thead) for row in head.findall(nodes.row)]
    rows = [row for body in node.findall(nodes.tbody) for row in body.findall(nodes.row)]
    cells = [[_cell(entry) for entry in row.children] for row in (*heads, *rows)]
    width = max(map(len, cells), default=0)
    if not width:
        return
    cells = [row + [""] * (width - len(row)) for row in cells]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    yield "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _cell(entry: nodes.Node) -> str:
    text = " ".join(" ".join(_blocks(entry, 1)).split())
    return text.replace("|", "\\|")


def _lines(node: nodes.Node, depth: int = 0) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, nodes.line_block):
            yield from _lines(child, depth + 1)
        else:
            yield "    " * depth + _inline(child)


def _inline(node: nodes.Node) -> str:
    parts = []
    for child in node.children:
        match child:
            case nodes.Text():
                parts.append(child.astext())
            case nodes.literal() | nodes.math():
                parts.append(f"`{child.astext()}`")
            case nodes.strong():
                parts.append(f"**{_inline(child)}**")
            case nodes.emphasis() | nodes.title_reference():
                parts.append(f"*{_inline(child)}*")
            case nodes.image():
                parts.append(f"[Picture: {child['alt']}]" if child.get("alt") else "")
            case nodes.footnote_reference() | nodes.citation_reference():
                parts.append(f"[{child.astext()}]")
            case nodes.problematic() | nodes.substitution_reference():
                parts.append(child.astext())
            case nodes.system_message() | nodes.comment() | nodes.target():
                parts.append(_inline(child) if isinstance(child, nodes.target) else "")
            case nodes.Element():
                parts.append(_inline(child))
    text = " ".join("".join(parts).split("\n"))
    return link(text, node.get("refuri", "")) if isinstance(node, nodes.reference) else text
