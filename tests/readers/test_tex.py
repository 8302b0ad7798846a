"""LaTeX becomes Markdown with all its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.chunking.chunker import chunk_document
from ragistry.readers.extract import extract
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.tex import read_tex

PAPER = r"""
\documentclass[11pt]{article}
\usepackage{graphicx} % not text
\title{Otters in \emph{clear} Rivers}
\author{J. M\"uller \and \'Elise Cort\'es}
\begin{document}
\maketitle
\begin{abstract}
We count otters~\cite{lee2020} at 5\% more sites.% a remark
\end{abstract}
\section{Methods}\label{sec:methods}
See Section~\ref{sec:results}; ``traps'' were \textbf{never \emph{ever}} used --- not once, cf.\ \textit{Lutra}.
\begin{itemize}
  \item first, the \texttt{north} bank
  \item[B] then the south\footnote{Stra\ss e 3, \c{c}a va.}
\end{itemize}
\begin{equation}
  x_{1} = \frac{a}{b} % kept
\end{equation}
\subsection*{Code}
\begin{lstlisting}[language=Python]
count = 5 % 3  # \section{no}
\end{lstlisting}
\begin{tabular}{lr} river & count \\ Ouse & 7 \\ \end{tabular}
Costs \$5, $y^2$ and \{sets\}.
\end{document}
Never shown.
"""
EXPECTED = """Otters in clear Rivers

J. Müller and Élise Cortés

We count otters at 5% more sites.

## Methods

See Section ; “traps” were never ever used — not once, cf. Lutra.

- first, the north bank
- B then the south [Note: Straße 3, ça va.]

\\begin{equation}
  x_{1} = \\frac{a}{b}
\\end{equation}

### Code

```
count = 5 % 3  # \\section{no}
```

| river | count |
| --- | --- |
| Ouse | 7 |

Costs $5, $y^2$ and {sets}.
"""


def test_the_words_of_a_paper_are_read_with_its_headings_lists_code_and_formulas(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(PAPER, encoding="utf-8")
    found = extract(path)
    assert found.text == EXPECTED.rstrip()
    assert found.metadata == {"title": "Otters in clear Rivers", "author": "J. Müller and Élise Cortés"}
    [chunk] = [chunk for chunk in chunk_document(path, 120) if "north" in chunk.text]
    assert chunk.metadata["heading_context"].endswith("Methods")


def test_a_part_of_a_document_is_all_text(tmp_path: Path) -> None:
    path = tmp_path / "chapter.tex"
    path.write_text("\\chapter{Rain}\nGauges fill\\\\slowly. {\\em Very} slowly.", encoding="utf-8")
    assert extract(path).text == "# Rain\n\nGauges fill\nslowly. Very slowly."
    path.write_text("% nothing", encoding="utf-8")
    assert extract(path).warnings == ("the document is empty: it has no text to search",)


UNITS = [
    *("{", "\\", "$", "\\begin{a}", "\\item[", "%\n", "\\begin{verbatim}", "\\begin{minted}{", "\\begin{lstlisting}[a"),
    *(
        "\\[ ",
        "\\( ",
        "\\begin{align}",
        "$$ ",
        " \t",
        "\\section{",
        "\\cite[",
        "}",
        "\\'",
        "\\verb|",
        "\\url{",
        "\\iffalse",
    ),
    *("\\newcommand{\\a}{", "\\begin{tabular}{", "\\begin{tikzpicture}", "\\textbf{a", "\\title{", "\\vskip "),
]


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_never_closed_is_read(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.tex"
    path.write_text("first " + unit * 30_001 + "\nlast", encoding="utf-8")
    found = extract(path, limits=ExtractLimits(seconds=20))
    assert found.text.startswith("first")


SHOWN = [
    (r"a $x$ \$5 \[y\] \(z\) $$w$$ c\\[2pt] d", "a $x$ $5 \\[y\\] \\(z\\) $$w$$ c\nd"),
    (r"\begin{align*} q_{1} \end{align*} e", "\\begin{align*} q_{1} \\end{align*} e"),
    (r"\begin{minted}[linenos]{c}" "\n  int x;\n" r"\end{minted}", "```\n  int x;\n```"),
    (r"\begin{verbatim} open", "```\n open\n```"),
    ("$a\n\nb$ c", "$a\n\nb$ c"),
    (
        r"\href{https://example.org/a_b\%20c}{the handbook} \url{x.org/~a%20b}",
        "[the handbook](https://example.org/a_b%20c) x.org/~a%20b",
    ),
    (
        r"\href{https://a.org}{https://a.org} \href{run:a}{a file} \hyperref[sec:a]{section A}",
        "https://a.org a file section A",
    ),
    (
        r"\begin{frame}[plain]{Top \\ title}{Below} \begin{block}{Box} in \end{block} \end{frame}",
        "#### Top title\n\nBelow\nBox\nin",
    ),
    (r"\frame{\frametitle{Head} \only<2->{late} \alert<1>{now}}", "#### Head\n\nlate now"),
    (r"\newcommand{\tool}{Heron\xspace}\tool is, \tool{} and \tool.", "Heron is, Heron and Heron."),
    (r"\newcommand*\pair[2][one]{#1 and \emph{#2}}\pair{two}, \pair[a]{b}", "one and two, a and b"),
    (r"\def\x#1{<#1>}\renewcommand{\x}[1]{$#1^2$}\x{\textbf{z}}", "$z^2$"),
    (r"\NewDocumentCommand{\dd}{O{p} m}{#1#2}\dd{q} \DeclareMathOperator{\m}{arg max}\m", "pq arg max"),
    (r"\newenvironment{hint}[1]{\textbf{Hint #1:}}{end}\begin{hint}{5}go\end{hint}", "Hint 5:\ngo\nend"),
    (
        r"\newtheorem{satz}{Satz}\begin{satz}[Euler]A\end{satz}\begin{proof}[by hand]B\end{proof}",
        "Satz Euler\nA\n\n[by hand]\nB",
    ),
    (r"\pounds 5 \texteuro{} 7 \S 3 \textasciitilde/ \textbackslash n \~{} \ldots", "£ 5 € 7 § 3 ~/ \\ n ~ …"),
    (r"Stra\ss e, na\"\i ve, \c{c}a, \v s, \L{}\'od\'z, \H{o}, \^\i, \AA", "Straße, naïve, ça, š, Łódź, ő, î, Å"),
    (
        r"man\-u\-al 50\,km super%" "\n  " r"cali \enquote{q} `` '' -- ---",
        "manual 50 km supercali “q” “ ” \u2013 \u2014",
    ),
    (r"\textcolor{red}{warning} \fcolorbox{a}{b}{box} \foo{one}{two} \foo[x]{three}", "warning box one two three"),
    (
        r"\parbox[t]{3cm}{par} \resizebox{\textwidth}{!}{big} \foo{0.5\textwidth}{w} \vskip 3pt plus 1pt end",
        "par big w end",
    ),
    (r"\begin{minipage}[t]{2cm}m\end{minipage}\begin{odd}{Words}n\end{odd}", "m\n\nWords\nn"),
    (r"\cite[see][p.~3]{key} \citep{k} \autoref{a}\label{b} \includegraphics[width=2cm]{c} d", "[see][p. 3] d"),
    (
        r"\begin{tabular}{@{}l|p{3cm}r@{}}A & B & C \\[2pt] \multicolumn{2}{c}{Wide} & $|x|$ \\ "
        r"a \& b & \multirow{2}{*}{m}\end{tabular}",
        "| A | B | C |\n| --- | --- | --- |\n| Wide |  | $\\|x\\|$ |\n| a & b | m |  |",
    ),
    (
        r"\begin{lstlisting}[caption={Sort it},label=a]" "\nx % y\n" r"\end{lstlisting} \verb|a_b %| \lstinline{c}",
        "Sort it\n```\nx % y\n```\na_b % c",
    ),
    (
        r"\begin{tikzpicture}\draw (0,0) node[right] {North} -- (1,1);\end{tikzpicture}\caption[s]{A \emph{map}}",
        "North\n\nA map",
    ),
    (r"a\begin{comment}b\end{comment}\iffalse c\fi % d", "a"),
    (r"\section[short]{Long \texttt{x}\label{a}}\paragraph{Q} t\item<1->[k] v", "## Long x\n\n##### Q\n\nt\n- k v"),
]


@pytest.mark.parametrize(("source", "expected"), SHOWN)
def test_what_a_reader_of_the_printed_page_sees_is_read_and_nothing_else(source: str, expected: str) -> None:
    assert read_tex(source)[0] == f"{expected}\n"


def test_the_first_page_is_read_and_its_authors_are_metadata() -> None:
    text, about = read_tex(
        r"\documentclass[a4paper]{article}\usepackage[english]{babel}\setlength{\parindent}{0pt}"
        r"\title[T]{On\\Herons\thanks{Paid}}\author{Ann Ray\inst{1}}"
        r"\author{J\"org \and Bo}\institute{Oak Hall}\date{\today}"
        r"\supervisor{Prof. Elm}\fancyhead[L]{Draft of May}"
        r"\extrainfo{\begin{center}Bring \emph{only} the pens that you need today.\end{center}}\AtBeginDocument{\foo x}"
        r"\begin{document}\maketitle Text. \verb|\end{document}| More.\end{document} No."
    )
    shown = ["On\nHerons [Note: Paid]", "Ann Ray", "Jörg and Bo", "Oak Hall", "Prof. Elm", "Draft of May"]
    shown += ["Bring only the pens that you need today."]
    assert text == "\n\n".join([*shown, "Text. \\end{document} More.\n"])
    assert about == {"Title": "On Herons", "Author": "Ann Ray, Jörg and Bo"}


BOMBS = [
    "".join(rf" \def\{chr(97 + at)}{{\{chr(98 + at)}\{chr(98 + at)}}}" for at in range(20)) + r"\def\u{words}",
    r"\def\a{x\a\a}",
    r"\newcommand{\a}[1]{" + "#1" * 1_000 + "}",
    r"\def\a{$" + "x" * 9_000 + "$}" + r"\a" * 9_000,
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_commands_that_multiply_themselves_end(bomb: str) -> None:
    text, _ = read_tex(bomb + r" first \a{\a{\a{" + "word " * 500 + "}}} last")
    assert "first" in text
    assert text.endswith("last\n")
    assert len(text) < 400_000 + 12 * len(bomb)
