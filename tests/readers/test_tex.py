"""LaTeX becomes Markdown with all its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.chunking.chunker import chunk_document
from ragistry.readers.extract import extract
from ragistry.readers.extracted import ExtractLimits

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
EXPECTED = """We count otters at 5% more sites.

## Methods

See Section ; “traps” were never ever used — not once, cf. Lutra.

- first, the north bank
- B then the south Straße 3, ça va.

\\begin{equation}
  x_{1} = \\frac{a}{b}
\\end{equation}

### Code

```
count = 5 % 3  # \\section{no}
```

river & count
Ouse & 7

Costs $5, $y^2$ and {sets}.
"""


def test_the_words_of_a_paper_are_read_with_its_headings_lists_code_and_formulas(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(PAPER, encoding="utf-8")
    found = extract(path)
    assert found.text == EXPECTED
    assert found.metadata == {"title": "Otters in clear Rivers", "author": "J. Müller and Élise Cortés"}
    [chunk] = [chunk for chunk in chunk_document(path, 120) if "north" in chunk.text]
    assert chunk.metadata["heading_context"].endswith("Methods")


def test_a_part_of_a_document_is_all_text(tmp_path: Path) -> None:
    path = tmp_path / "chapter.tex"
    path.write_text("\\chapter{Rain}\nGauges fill\\\\slowly. {\\em Very} slowly.", encoding="utf-8")
    assert extract(path).text == "# Rain\n\nGauges fill\nslowly. Very slowly.\n"
    path.write_text("% nothing", encoding="utf-8")
    assert extract(path).warnings == ("the document is empty: it has no text to search",)


UNITS = [
    *("{", "\\", "$", "\\begin{a}", "\\item[", "%\n", "\\begin{verbatim}", "\\begin{minted}{", "\\begin{lstlisting}[a"),
    *("\\[ ", "\\( ", "\\begin{align}", "$$ ", " \t", "\\section{", "\\cite["),
]


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_never_closed_is_read(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.tex"
    path.write_text("first " + unit * 30_001 + "\nlast", encoding="utf-8")
    found = extract(path, limits=ExtractLimits(seconds=20))
    assert found.text.startswith("first")


FORMULAS = [
    (r"a $x$ \$5 \[y\] \(z\) $$w$$ c\\[2pt] d", "a $x$ $5 \\[y\\] \\(z\\) $$w$$ c\nd\n"),
    (r"\begin{align*} q_{1} \end{align*} e", "\\begin{align*} q_{1} \\end{align*} e\n"),
    (r"\begin{minted}[linenos]{c}" "\n  int x;\n" r"\end{minted}", "```\n  int x;\n```\n"),
    (r"\begin{verbatim} open", "open\n"),
    ("$a\n\nb$ c", "$a\n\nb$ c\n"),
]


@pytest.mark.parametrize(("source", "expected"), FORMULAS)
def test_formulas_and_code_are_kept_as_they_are(source: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tex"
    path.write_text(source, encoding="utf-8")
    assert extract(path).text == expected
