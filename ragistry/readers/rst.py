"""reStructuredText as Markdown, as a reader of the built page sees it.

docutils parses it and makes a page. Roles and directives of Sphinx and others, which docutils does not know, become
their text.
"""

from __future__ import annotations

import re
from copy import copy
from functools import cache
from typing import Any

from docutils import nodes
from docutils.core import publish_parts
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.parsers.rst.states import SubstitutionDef
from docutils.readers.standalone import Reader
from docutils.statemachine import StringList
from docutils.transforms import Transform
from docutils.writers.html5_polyglot import Writer

from ragistry.readers.blocks import Block, ReadDocument
from ragistry.readers.encoding import decode
from ragistry.readers.html_page import to_markdown

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
    "traceback": True,
    "doctitle_xform": False,
    "docinfo_xform": True,
    "smart_quotes": False,
    "syntax_highlight": "none",
    "input_encoding": "unicode",
    "output_encoding": "unicode",
    "embed_stylesheet": False,
    "initial_header_level": 1,
    "math_output": "LaTeX",
    "line_length_limit": 1_000_000_000,  # by default, a document with a long line is empty
}


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read a document with docutils, and without its errors."""
    _understand_everything()
    decoded = decode(data)
    reader = _Reader()
    page = publish_parts(decoded.text, reader=reader, writer=Writer(), settings=copy(_settings()))["whole"]
    return ReadDocument(
        [Block(to_markdown(page))], reader.document.info, warnings=[decoded.warning] if decoded.warning else []
    )


@cache
def _settings() -> Any:
    """Return the settings, which take docutils longer than a short document."""
    settings = get_default_settings(Parser, _Reader, Writer)
    for name, value in _SETTINGS.items():
        setattr(settings, name, value)
    return settings


class _WrittenStyles(Transform):  # type: ignore[misc]
    """Write what a page of docutils shows by its style only: languages, notes, classifiers. Collect the metadata."""

    default_priority = 910  # after all transforms of the parser

    def apply(self) -> None:
        info = self.document.info = {"Title": "", "Author": "", "Created": ""}
        for node in [*self.document.findall(nodes.Element)]:
            match node:
                case nodes.title() if not isinstance(node.parent, nodes.Admonition):
                    info["Title"] = info["Title"] or node.astext()
                case nodes.author():
                    info["Author"] = info["Author"] or node.astext()
                case nodes.date():
                    info["Created"] = info["Created"] or node.astext()
                case nodes.literal_block():
                    names = [name for name in node["classes"] if name != "code" and _LANGUAGE.fullmatch(name)]
                    node["classes"] = [f"lang-{name}" for name in names[:1]]
                case nodes.literal():
                    node["classes"] = ["code"]
                case nodes.image():
                    node.setdefault("alt", "")  # otherwise its address is shown
                case nodes.classifier():
                    node.insert(0, nodes.Text(" ("))
                    node.append(nodes.Text(")"))
                case nodes.label():
                    note = node.parent
                    note.remove(node)
                    paragraphs = [*note.findall(nodes.paragraph)] or [note]
                    paragraphs[0].insert(0, nodes.Text(f"[Note {node.astext()}: "))
                    paragraphs[-1].append(nodes.Text("]"))


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
        return [*super().get_transforms(), _UndefinedSubstitutions, _WrittenStyles]


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


class _AnyOption(dict[str, Any]):
    """Accepts every option."""

    def __missing__(self, name: str) -> Any:
        return lambda value: value

    def __contains__(self, name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


class _AnyDirective(Directive):  # type: ignore[misc]
    """Takes every argument, option and content."""

    has_content = True
    optional_arguments = 1_000
    final_argument_whitespace = True
    option_spec = _AnyOption()


class _Invisible(_AnyDirective):
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


@cache
def _lenient(directive: type[Directive]) -> type[Directive]:
    """Return a directive of docutils that accepts the options that others add to it, such as ``:linenos:``."""

    def run(self: Directive) -> list[nodes.Node]:
        return [*_captioned(self), *directive.run(self)]

    return type(directive.__name__, (directive,), {"option_spec": _AnyOption(directive.option_spec or {}), "run": run})


class _TextDirective(_AnyDirective):
    """An unknown directive: its argument as a paragraph, and its content as part of the document."""

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
