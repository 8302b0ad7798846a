"""Convert LaTeX to Markdown: headings, lists, code and text; formulas are kept unchanged.

A full converter would need the packages that a document loads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import normalize

_OPTION = r"\[[^\]\n]{0,300}\]"
_VERBATIM = re.compile(rf"\\begin\{{(verbatim|lstlisting|minted)(\*?)\}}(?:{_OPTION}|\{{[^{{}}\n]{{0,300}}\}})*\n?")
_BLANKS = r"(?:(?<![ \t])[ \t]*)?"  # all blanks before something; looked for once only
_COMMENT = re.compile(rf"(?<!\\)((?:\\\\)*){_BLANKS}%.*")
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)
_ARGUMENT = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
_SAID = re.compile(rf"\\(title|author|date)\s*(?:{_OPTION})?{_ARGUMENT}")
_LEVELS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
_HEADING = re.compile(rf"\\({'|'.join(_LEVELS)})\*?\s*(?:{_OPTION})?{_ARGUMENT}")
_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a",
}  # fmt: skip
_ACCENT = re.compile(r"""\\(?:([`'^~"=.])\s*|([uvHckr])(?=\s*\{|\s+\w)\s*)(?:\{\\?([A-Za-z])\}|\\?([A-Za-z]))""")
_LETTERS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "aa": "å", "AA": "Å", "l": "ł", "L": "Ł",
    "and": "and ", "ldots": "…", "dots": "…",
    "textbackslash": "\\", "LaTeX": "LaTeX", "TeX": "TeX", "S": "§", "copyright": "©",
}  # fmt: skip
_LETTER = re.compile(rf"\\({'|'.join(_LETTERS)})(?![A-Za-z])\s?(?:\{{\}})?")
_MATH = re.compile(
    r"\\\\|\\\$|(?P<formula>\$(?!\$)[^$\n]*(?:\n[^$\n]+)*\$)|(?P<opening>\$\$|\\\[|\\\()|"
    r"\\begin\{(equation|align|gather|multline|eqnarray|displaymath)(\*?)\}"
)
_CLOSING = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_DROPPED = re.compile(
    r"\\(?:[A-Za-z]*cite[A-Za-z]*|[A-Za-z]*ref|label|pageref|index|vspace|hspace|includegraphics|input|include|"
    r"bibliography|bibliographystyle|usepackage|documentclass|newcommand|renewcommand|setlength|pagestyle|"
    r"thispagestyle|color|definecolor|begin|end)\*?(?:\[[^\]\n]{0,300}\])*(?:\{[^{}]*\})*"
)
_COMMAND = re.compile(r"\\[A-Za-z]+\*?[ \t]*(?:\[[^\]\n]{0,300}\])?")

_MARKS = dict.fromkeys(range(0xE000, 0xE004))  # private characters used as placeholders below


def read_tex(source: str) -> tuple[str, dict[str, str]]:
    """Convert the body of a LaTeX file; also return its ``title``, ``author`` and ``date``, if it has them.

    A file without ``document``, which another file includes, is completely body.
    """
    kept: list[str] = []

    def keep(text: str) -> str:
        """Return a placeholder for a text that must not change; the text is restored at the end."""
        kept.append(text)
        return f"\ue000{len(kept) - 1}\ue001"

    source = source.translate(_MARKS)

    def code(_: re.Match[str], content: str) -> str:
        return keep(f"\n```\n{content.rstrip()}\n```\n")

    def formula(match: re.Match[str], content: str) -> str:
        if not (closing := _closing(match)):
            return keep(match[0]) if match["formula"] else match[0]
        return keep(f"{match[0]}{content}{closing}")

    text = _enclosed(source, _VERBATIM, code)
    text = _COMMENT.sub(r"\1", text)
    about = {match[1]: _plain(match[2]) for match in _SAID.finditer(text)}
    body = _BODY.search(text)
    text = _SAID.sub("", body[1] if body else text)
    text = _enclosed(text, _MATH, formula)
    text = _HEADING.sub(lambda match: f"\n\n{'#' * _LEVELS[match[1]]} {_plain(match[2])}\n\n", text)
    text = re.sub(
        rf"{_BLANKS}\\item\b[ \t]*(?:\[([^\]\n]{{0,300}})\])?[ \t]*",
        lambda match: f"- {match[1] or ''} ".replace("  ", " "),
        text,
    )
    text = re.sub(r"[ \t]{2,}", " ", _plain(text.replace("\\footnote{", " {"), lines=True))
    text = "\n".join(line.strip() for line in text.split("\n"))
    while "\ue000" in text:
        text = re.sub("\ue000(\\d+)\ue001", lambda match: kept[int(match[1])], text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", {key: value for key, value in about.items() if value}


def _closing(match: re.Match[str]) -> str:
    """Return what ends an environment or formula; empty for what is whole already."""
    opening = match.groupdict().get("opening")
    if opening:
        return _CLOSING[opening]
    name, star = match.groups()[-2:]
    return f"\\end{{{name}{star}}}" if name else ""


def _enclosed(
    text: str,
    opening: re.Pattern[str],
    replacement: Callable[[re.Match[str], str], str],
) -> str:
    """Replace what stands between an opening and its closing; an opening without one stays. Takes linear time."""
    parts: list[str] = []
    absent: set[str] = set()
    done = position = 0
    while found := opening.search(text, position):
        position, mark = found.end(), _closing(found)
        end = -1 if mark in absent else text.find(mark, position)
        if end < 0:
            absent.add(mark)
            continue
        parts += [text[done : found.start()], replacement(found, text[position:end])]
        done = position = end + len(mark)
    return "".join([*parts, text[done:]])


def _plain(text: str, *, lines: bool = False) -> str:
    """Remove the commands from a text; join it to one line unless ``lines``."""
    text = _ACCENT.sub(lambda match: normalize("NFC", (match[3] or match[4]) + _ACCENTS[match[1] or match[2]]), text)
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], text)
    text = _DROPPED.sub("", text)
    text = re.sub(r"\\\\(?:\*|\[[^\]\n]{0,300}\])?", "\n", text)
    text = _COMMAND.sub("", text)
    text = re.sub(r"\\([%&_#${}])", lambda match: {"{": "\ue002", "}": "\ue003"}.get(match[1], match[1]), text)
    text = re.sub(r"[{}]", "", text).replace("\ue002", "{").replace("\ue003", "}")
    text = re.sub(r"\\[,;:! /-]?", lambda match: " " if match[0] in ("\\,", "\\;", "\\:", "\\ ") else "", text)
    text = text.replace("~", " ").replace("``", "“").replace("''", "”").replace("---", "\u2014").replace("--", "\u2013")
    return text if lines else " ".join(text.split())
