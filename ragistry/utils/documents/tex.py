"""Convert LaTeX to Markdown: headings, lists, code and text; formulas are kept unchanged.

kreuzberg drops the body of such files, and a full converter would need the packages that a document loads.
"""

from __future__ import annotations

import re
from unicodedata import normalize

_VERBATIM = re.compile(
    r"\\begin\{(verbatim|lstlisting|minted)\*?\}(?:\[[^\]\n]{0,300}\]|\{[^}]*\})*\n?(.*?)\\end\{\1\*?\}", re.DOTALL
)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)[ \t]*%.*")
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)
_OPTION = r"\[[^\]\n]{0,300}\]"
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
    r"\$\$.*?\$\$|\$[^$\n]*(?:\n[^$\n]+)*\$|\\\[.*?\\\]|\\\(.*?\\\)|"
    r"\\begin\{(equation|align|gather|multline|eqnarray|displaymath)(\*?)\}.*?\\end\{\1\2\}",
    re.DOTALL,
)
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
    text = _VERBATIM.sub(lambda match: keep(f"\n```\n{match[2].rstrip()}\n```\n"), source)
    text = _COMMENT.sub(r"\1", text)
    about = {match[1]: _plain(match[2]) for match in _SAID.finditer(text)}
    body = _BODY.search(text)
    text = _SAID.sub("", body[1] if body else text)
    text = _MATH.sub(lambda match: keep(match[0]), text)
    text = _HEADING.sub(lambda match: f"\n\n{'#' * _LEVELS[match[1]]} {_plain(match[2])}\n\n", text)
    text = re.sub(
        r"[ \t]*\\item\b[ \t]*(?:\[([^\]\n]{0,300})\])?[ \t]*",
        lambda match: f"- {match[1] or ''} ".replace("  ", " "),
        text,
    )
    text = re.sub(r"[ \t]{2,}", " ", _plain(text.replace("\\footnote{", " {"), lines=True))
    text = "\n".join(line.strip() for line in text.split("\n"))
    while "\ue000" in text:
        text = re.sub("\ue000(\\d+)\ue001", lambda match: kept[int(match[1])], text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", {key: value for key, value in about.items() if value}


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
