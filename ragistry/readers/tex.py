"""Convert LaTeX to Markdown: headings, lists, tables, code and text; formulas are kept unchanged.

The commands that a document defines are expanded. Of common commands it is known which arguments are text; of any
other one all are. Commands are replaced from the innermost braces outwards. Nothing outside of the file is read.
"""

from __future__ import annotations

import re
from unicodedata import normalize

from ragistry.readers.blocks import Block, ReadDocument
from ragistry.readers.encoding import decode
from ragistry.readers.word_processing import table_markdown

_SIGNS = """
ss ß SS SS ae æ AE Æ oe œ OE Œ o ø O Ø aa å AA Å l ł L Ł i ı j ȷ th þ TH Þ dh ð DH Ð dj đ DJ Đ ng ŋ NG Ŋ S § P ¶
ldots … dots … textellipsis … LaTeX LaTeX TeX TeX LaTeXe LaTeX2e BibTeX BibTeX XeLaTeX XeLaTeX XeTeX XeTeX
LuaLaTeX LuaLaTeX LuaTeX LuaTeX pdfLaTeX pdfLaTeX KOMAScript KOMA-Script copyright © textcopyright © textregistered ®
texttrademark ™ pounds £ textsterling £ euro € texteuro € EUR € textyen ¥ textcent ¢ textdegree ° degree ° textbar |
textless < textgreater > textquotedbl " textquotesingle ' textmu µ texttimes × textpm ± textdiv ÷ textbullet •
textperiodcentered · textsection § textparagraph ¶ textdagger † textdaggerdbl ‡ dag † ddag ‡ textordfeminine ª
textordmasculine º textendash – textemdash — textquoteleft ‘ textquoteright ’ textquotedblleft “ textquotedblright ”
guillemotleft « guillemotright » guillemetleft « guillemetright » flqq « frqq » og « fg » glqq „ grqq “ quotedblbase „
lq ‘ rq ’ textexclamdown ¡ textquestiondown ¿ textonehalf ½ textonequarter ¼ textthreequarters ¾ textnumero № No №
slash / lbrack [ rbrack ] quad ~ qquad ~ enspace ~ thinspace ~ space ~ hfill ~ hfil ~ vfill ~ bigskip ~ medskip ~
smallskip ~ newpage ~ clearpage ~ cleardoublepage ~ pagebreak ~ and ~and~ AND ~and~ newline \ue004
tabularnewline \ue004 linebreak \ue004 par \ue003 textbackslash \ue007 textasciitilde \ue008 textbraceleft \ue009
textbraceright \ue00a
"""  # noqa: RUF001
"""Commands without arguments, each with its text."""
_COMMANDS = """
1 label index glossary input include includeonly includegraphics includesvg includepdf subfile bibliography
1 nocite bibliographystyle addbibresource usepackage RequirePackage documentclass pagestyle thispagestyle
1 pagenumbering color hypersetup geometry lstset usetheme usecolortheme usetikzlibrary graphicspath cline
1 cmidrule rowcolor cellcolor columncolor phantom hphantom vphantom setstretch linespread selectlanguage
1 newcounter newlength stepcounter refstepcounter usefont fontfamily fontseries lstinputlisting verbatiminput
1 markright hyphenation tikzset pgfplotsset captionsetup newif inst
2 setlength addtolength setcounter addtocounter rule fontsize markboth let numberwithin setbeamertemplate
2 setbeamercolor setbeamerfont settowidth inputminted
3 definecolor addcontentsline addtocontents
0 xspace
1 hspace vspace bibitem = ~
1 hyperref mbox = #1
1 footnote footnotetext thanks sidenote marginpar = ~[Note: #1]
1 caption subcaption framesubtitle minisec title subtitle author date institute = \ue003#1\ue003
2 captionof = \ue003#2\ue003
1 enquote = “#1”
2 textcolor colorbox parbox raisebox scalebox rotatebox hyperlink hypertarget foreignlanguage setkomavar = #2
2 texorpdfstring = #1
2 href = [#2]#1
3 multirow multicolumn fcolorbox resizebox = #3
1 part chapter addchap = \ue003# #1\ue003
1 section addsec = \ue003## #1\ue003
1 subsection = \ue003### #1\ue003
1 subsubsection frametitle = \ue003#### #1\ue003
1 paragraph = \ue003##### #1\ue003
1 subparagraph = \ue003###### #1\ue003
1 begin{minipage} begin{multicols} begin{thebibliography} begin{column} begin{spacing} begin{textblock} = \ue002
1 begin{list} begin{otherlanguage} = \ue002
2 begin{wrapfigure} begin{wraptable} begin{adjustwidth} begin{CJK} = \ue002
1 begin{tabular} begin{longtable} begin{supertabular} begin{xltabular} begin{array} begin{tblr} = \ue005
1 begin{longtblr} begin{tabu} = \ue005
2 begin{tabular*} begin{tabularx} begin{tabulary} = \ue005
0 end{tabular} end{longtable} end{supertabular} end{xltabular} end{array} end{tblr} end{longtblr} end{tabu} = \ue006
0 end{tabular*} end{tabularx} end{tabulary} = \ue006
"""
"""Commands by their number of arguments, with what is shown of these.

The signs of the private area mark a new line, a paragraph, the end of a row, and both ends of a table.
"""
_FIRST_PAGE = re.compile(
    "title|subtitle|author|date|institute|affil|affiliation|address|email|keywords|signature|name|phone|dedication"
    "|titlehead|publishers|subject|university|department|school|supervisor|advisor|abstract|setkomavar"
)
_OPTION = r"\[(?:[^\[\]{}]|\{(?:[^{}]|\{[^{}]*\}){0,300}\}){0,300}\]"
_BRACED = r"\{((?:[^{}]++|\{(?:[^{}]++|\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\})*+\})*+)\}"
_SPACE = r"[ \t]*+\n?[ \t]*+"
_LITERAL = re.compile(
    r"(?P<hidden>%[^\n]*(?:\n[ \t]*(?=\S))?|\\iffalse\b.*?(?:\\fi\b|\Z)"
    r"|\\begin\{(?P<remark>comment|filecontents\*?)\}.*?(?:\\end\{(?P=remark)\}|\Z))"
    r"|\\(?P<row>\\)\*?(?:\[[^\[\]\n]{0,60}\])?|\\(?P<space>[ ,;:>]|=(?=\s))|\\[/!@-]|\\(?P<sign>[%&#_${}])"
    rf"|\\(?:verb|lstinline|mintinline)\b\*?(?:{_OPTION})?(?:\{{\w+\}}(?=[^\w\s]))?"
    r"(?:\{(?P<braced>[^{}\n]*)\}|(?P<mark>[^\w\s*{\\])(?P<verb>[^\n]{0,500}?)(?P=mark))"
    r"|\\(?P<link>href|url|nolinkurl|path)\s*\{(?P<url>[^{}\n]*)\}(?P<same>\s*\{(?P=url)\})?"
    r"|\\begin\{tikzpicture\}(?P<drawing>.*?)(?:\\end\{tikzpicture\}|\Z)"
    r"|\\begin\{(?P<name>[BL]?[Vv]erbatim\*?|lstlisting|minted|alltt|semiverbatim)\}"
    rf"(?P<options>(?:{_OPTION}|\{{[^{{}}\n]{{0,300}}\}})*)\n?(?P<code>.*?)(?:\\end\{{(?P=name)\}}|\Z)"
    r"|(?P<formula>\$(?!\$)[^$\n]*(?:\n[^$\n]+)*\$|\$\$[^$]*\$\$|(?:(?P<inline>\\\()|(?P<display>\\\[)|\\begin\{"
    r"(?P<kind>(?:equation|align|alignat|flalign|gather|multline|eqnarray|displaymath|math)\*?)\}).*?"
    r"(?:(?(inline)\\\)|(?(display)\\\]|\\end\{(?P=kind)\}))|(?=\n[ \t]*\n)|\Z))",
    re.DOTALL,
)
_REMARK = re.compile(r"(?<![ \t])[ \t]*(?<!\\)%.*")
_CODE_CAPTION = re.compile(r"\b(?:caption|title)=(\{[^{}]*\}|[^{},\]]*)")
_NODE = re.compile(r"\bnode\b[^{};]{0,300}\{((?:[^{}]|\{[^{}]{0,300}\}){0,300})\}")
_ACCENTS = dict(
    zip(
        "`'^~\"=.uvHckrdb",
        "\u0300\u0301\u0302\u0303\u0308\u0304\u0307\u0306\u030c\u030b\u0327\u0328\u030a\u0323\u0331",
        strict=True,
    )
)
_ACCENT = re.compile(
    r"""\\([`'^~"=.]|[uvHckrdb](?=\s*\{|\s+\w))\s*(?:\{\\?([^\W\d_]?)\}|\\?([^\W\d_])(?:(?<=\\[ij]) )?)"""
)
_TOLD = re.compile(rf"\\([A-Za-z]+)\*?\s*(?:{_OPTION})?((?:\s*{_BRACED})+)")
_PROSE = re.compile(r"(?=[^=#@\\]*\Z)(?s:.*[^\W\d_]{2}\s)|(?s:.*?)\b(?:[^\W\d_]{2,40}[,;.]?\s{1,9}){5}")
_DEFINITION = re.compile(
    r"\\(?P<how>(?P<pair>(?:re)?newenvironment|(?:New|Renew|Provide|Declare)Document(?:Command|Environment))|[egx]?def"
    r"|newtheorem|DeclareMathOperator|(?:re)?newcommand|providecommand|DeclareRobustCommand)\*?\s*"
    rf"(?:\{{\s*\\?(?P<braced>[^{{}}\\\s]+)\s*\}}|\\(?P<name>[A-Za-z]+))\s*(?:\[(?P<count>\d)\])?\s*(?P<default>{_OPTION})?"
    rf"(?P<numbers>(?:\s*#\d[^#{{}}\\]*)*)\s*{_BRACED}(?(pair)\s*{_BRACED})"
)
_COMMAND = re.compile(
    r"\\((?:begin|end)\{[^{}]*\}|[A-Za-z]+)\*?([ \t]*)((?:<[^<>\n]{0,60}>|\[[^\[\]{}]{0,500}\])*+)"
    rf"((?:{_SPACE}\{{[^{{}}]*\}})*+)((?={_SPACE}\{{|\[[^\[\]\n]{{0,300}}\{{))?|(?<!\}})\{{([^{{}}]*)\}}"
)
"""A command with its arguments, none of which has braces inside, and whether others follow; or the text in braces."""
_LENGTH = re.compile(r"\s*+-?[\d.]*+\s*+(?:\\(?:text|line|column|paper)(?:width|height)|pt|cm|mm|em|ex|in)\s*")
_SKIP = re.compile(rf"\\(?:[a-z]*skip|kern|parindent)\s*+=?\s*+{_LENGTH.pattern}(?:(?:plus|minus){_LENGTH.pattern})*")
_LABELLED = re.compile(r".*cite|begin\{(?:theorem|proof|lemma|defin|propos|corol|example|remark|thm|lem|prop|cor)")
_LIGATURES = {"``": "“", "''": "”", "---": "\u2014", "--": "\u2013", "~": " "}
_MARKS = dict.fromkeys(range(0xE000, 0xE00B))
_TABLE = re.compile("\ue005([^\ue005\ue006]*)\ue006")
_LAYOUT = dict(zip(range(0xE003, 0xE00B), ("\n\n", "\n", "", "", *"\\~{}"), strict=True))

_Macro = tuple[int, str | None, str]
"""Number of arguments, the default of the first one if it is optional, and the text."""


def _built_in() -> dict[str, _Macro]:
    signs = _SIGNS.split()
    macros: dict[str, _Macro] = {name: (0, None, sign) for name, sign in zip(signs[::2], signs[1::2], strict=True)}
    for line in _COMMANDS.strip().split("\n"):
        names, _, text = line.partition(" = ")
        count, *commands = names.split()
        macros |= dict.fromkeys(commands, (int(count), None, text))
    return macros | {"item": (1, "", "\ue002- #1 ")}


_BUILT_IN = _built_in()


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001 - every reader has these parameters
    """Read a LaTeX file."""
    decoded = decode(data)
    text, info = read_tex(decoded.text)
    return ReadDocument([Block(text)], info, warnings=[decoded.warning] if decoded.warning else [])


def read_tex(source: str) -> tuple[str, dict[str, str]]:
    """Convert the body of a LaTeX file; also return its ``Title``, ``Author`` and ``Date``, if it has them.

    A file without ``document``, which another file includes, is completely body.
    """
    reader = _Reader(len(source))
    source = source.translate(_MARKS)
    if "german" in source:  # there, "a is ä
        source = re.sub(r'(?<=\w)"s', "ß", re.sub(r'(?<=\w)"([aou])(?=\w)', r'\\"\1', source))
    whole = _ACCENT.sub(reader.accented, _LITERAL.sub(reader.keep, source))
    whole = _DEFINITION.sub(reader.define, _SKIP.sub(" ", whole))
    text, begin, body = whole.partition("\\begin{document}")
    if begin:
        first = [
            one[2].replace("}{", "} {")
            for one in _TOLD.finditer(text)
            if _FIRST_PAGE.fullmatch(one[1]) or (one[1] not in _BUILT_IN and _PROSE.match(one[2]))
        ]
        text = "\ue003".join([*first, body.rpartition("\\end{document}")[0] or body])
    text = re.sub(r"\n{3,}", "\n\n", reader.convert(text)).strip() + "\n"
    reader.macros |= dict.fromkeys(("thanks", "footnote"), (1, None, ""))
    about: dict[str, str] = {}
    for one in _TOLD.finditer(whole):
        key = one[1].capitalize()
        if key in ("Title", "Author", "Date") and (value := " ".join(reader.convert(one[2]).split())):
            about[key] = f"{about[key]}, {value}" if key == "Author" and key in about else value
    return text, about


class _Reader:
    """Replaces the commands of a text. Time and result are linear in the size of the file."""

    def __init__(self, size: int) -> None:
        self._kept: list[str] = []
        self._budget = 100_000 + 10 * size  # characters that commands may make
        self.macros = dict(_BUILT_IN)

    def _placeholder(self, text: str) -> str:
        """Return a placeholder for a text that must not change; the text is restored at the end."""
        self._kept.append(text)
        return f"\ue000{len(self._kept) - 1}\ue001"

    def _restored(self, text: str) -> str:
        while "\ue000" in text:
            text = re.sub("\ue000(\\d+)\ue001", lambda match: self._kept[int(match[1])], text)
        return text

    def keep(self, match: re.Match[str]) -> str:
        """Replace code, formulas, addresses and signs by placeholders; remove what is hidden."""
        if match["row"]:
            return "\ue004"
        if match["drawing"]:
            return "\n".join(["", *_NODE.findall(match["drawing"]), ""])
        if match["link"]:
            url = match["url"].replace("\\", "")
            if match["link"] != "href" or match["same"]:
                return self._placeholder(url)
            return f"\\href{{{self._placeholder(f'({url})')}}}" if url.startswith(("http", "mailto:")) else ""
        if match["name"]:
            caption = _CODE_CAPTION.search(match["options"])
            shown = caption[1] if caption else ""
            code = self._placeholder(f"```\n{match['code'].rstrip()}\n```")
            return f"{shown}\ue002{code}\ue002"
        kept = match["sign"] or match["braced"] or match["verb"] or _REMARK.sub("", match["formula"] or "")
        return self._placeholder(kept) if kept else " " if match["space"] else ""

    def define(self, match: re.Match[str]) -> str:
        """Note a command or an environment that the document defines."""
        name, how, default = match["braced"] or match["name"], match["how"], match["default"]
        count = int(match["count"] or match["numbers"].count("#"))
        default = default[1:-1] if default else None
        text, second = match.groups()[-2:]
        if how == "newtheorem":
            name, count, default, text = f"begin{{{name}}}", 1, "", f"\ue003{text} #1\ue002"
        elif "nvironment" in how:
            self.macros[f"end{{{name}}}"] = (0, None, f"\ue002{second}")
            name, text = f"begin{{{name}}}", f"{text}\ue002"
        elif match["pair"]:
            optional = re.match(r"\s*(?:O\s*\{([^{}]*)\}|o)", text)
            count = len(re.findall("[A-Za-z]", re.sub(r"\{[^{}]*\}", "", text)))
            default, text = (optional[1] or "") if optional else None, second
        if not any(_BUILT_IN.get(name, ())[:1]) and not re.search(rf"\\{re.escape(name)}(?![A-Za-z])", text):
            self.macros[name] = (count, default, self._restored(text) if count else text)
        return ""

    def convert(self, text: str) -> str:
        """Return the Markdown of LaTeX whose code and formulas are kept."""
        for _ in range(50):
            before, text = text, _COMMAND.sub(self._expanded, text)
            if text == before:
                break
        text = re.sub(r"\\[A-Za-z]+\*?|[\\{}]", "", text)
        for sign, shown in _LIGATURES.items():
            text = text.replace(sign, shown)
        text = re.sub("\n? ?\ue002 ?", "\n", re.sub(r"[ \t]{2,}", " ", text))
        text = _TABLE.sub(self._table, text).translate(_LAYOUT)
        return self._restored("\n".join(line.strip() for line in text.split("\n")))

    def accented(self, match: re.Match[str]) -> str:
        if letter := match[2] or match[3]:
            return normalize("NFC", letter + _ACCENTS[match[1]])
        return self._placeholder(match[1]) if match[1] in "~^" else ""

    def _expanded(self, match: re.Match[str]) -> str:
        name, blank, options, groups, pending, inner = match.groups()
        if not name or pending is not None:
            return match[0] if name else inner
        arguments = re.findall(r"\{([^{}]*)\}", groups)
        if name == "begin{frame}" and arguments:
            name = "frametitle"
        if name not in self.macros:
            return self._unknown(name, options if blank or _LABELLED.match(name) else "", arguments)
        count, default, text = self.macros[name]
        if default is not None:
            option = re.search(r"\[(.*)\]", options, re.DOTALL)
            arguments.insert(0, option[1] if option else default)
        if "# #1" in text:
            arguments[:1] = [" ".join(one.replace("\ue004", " ").split()) for one in arguments[:1]]
        if count:
            text = re.sub(r"#(\d)", lambda number: "".join(arguments[int(number[1]) - 1 : int(number[1])]), text)
        elif blank and not groups and not (len(text) == 1 and text.isalpha()):
            text += blank
        if name == "multicolumn" and arguments and arguments[0].isdecimal():
            text += "&" * (min(int(arguments[0]), 50) - 1)
        self._budget -= len(self._restored(text))
        return " ".join([text, *filter(None, arguments[count:])]) if self._budget > 0 else " ".join(arguments)

    def _unknown(self, name: str, options: str, arguments: list[str]) -> str:
        shown = [one for one in arguments if not _LENGTH.fullmatch(one)]
        if "{" in name:
            return "\ue002".join(["", *filter(None, (options, *shown)), ""])
        return options if "cite" in name or name.endswith("ref") else options + " ".join(shown)

    def _table(self, match: re.Match[str]) -> str:
        rows = [
            [" ".join(self._restored(cell.translate(_LAYOUT)).split()) for cell in row.split("&")]
            for row in match[1].split("\ue004")
        ]
        return f"\n\n{table_markdown(rows)}\n\n" if max(map(len, rows)) > 1 else match[1]
