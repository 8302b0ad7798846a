"""Write formulas of Word and of OpenDocument (MathML) in one line: ``(a+b)/c``, ``x^2``, ``√(n)``.

No letters or digits are added, and their order stays as in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Element = Any  # lxml has no type hints

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT = W + "t"
_OMITTED = {W + "del", W + "moveFrom"}


def group(text: str) -> str:
    """Return a part of a formula in parentheses, unless it is one name or number."""
    return text if re.fullmatch(r"\w*|\w+[.,]\w+|\(.*\)", text) and ")(" not in text else f"({text})"


def office_formula(element: Element) -> str:
    """Return the text of a formula of Word, or of a part of it."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    if tag in (M + "t", _TEXT):
        return (element.text or "").replace("&", "")
    name = tag.rpartition("}")[2]
    if name.endswith("Pr") or tag in _OMITTED:
        return ""
    shape = _SHAPES.get(name) if tag.startswith(M) else None
    return "".join(map(office_formula, element)) if shape is None else shape(element)


def _part(element: Element, name: str) -> str:
    found = element.find(M + name)
    return "" if found is None else office_formula(found).strip()


def _option(element: Element, name: str, default: str) -> str:
    properties = element.find(f"{element.tag}Pr")
    found = None if properties is None else properties.find(M + name)
    return default if found is None else found.get(M + "val", "")


def _scripts(element: Element) -> str:
    low, high = _part(element, "sub"), _part(element, "sup")
    return (f"_{group(low)}" if low else "") + (f"^{group(high)}" if high else "")


def _raised(element: Element) -> str:
    base = _part(element, "e")
    return (group(base) if element.find(M + "sup") is not None else base) + _scripts(element)


def _root(element: Element) -> str:
    degree = _part(element, "deg")
    return f"√{f'[{degree}]' if degree else ''}({_part(element, 'e')})"


def _delimited(element: Element) -> str:
    inner = [office_formula(part) for part in element.findall(M + "e")]
    joined = _option(element, "sepChr", "|").join(inner)
    return f"{_option(element, 'begChr', '(')}{joined}{_option(element, 'endChr', ')')}"


def _function(element: Element) -> str:
    argument = _part(element, "e")
    return f"{_part(element, 'fName')}{'' if argument.startswith('(') else ' '}{argument}"


def _matrix(element: Element) -> str:
    rows = (
        ", ".join(office_formula(cell).strip() for cell in row.findall(M + "e")) for row in element.findall(M + "mr")
    )
    return "; ".join(rows)


_SHAPES: dict[str, Callable[[Element], str]] = {
    "f": lambda element: f"{group(_part(element, 'num'))}/{group(_part(element, 'den'))}",
    "sSup": _raised,
    "sSub": _raised,
    "sSubSup": _raised,
    "sPre": lambda element: f"{_scripts(element)}{_part(element, 'e')}",
    "rad": _root,
    "nary": lambda element: f"{_option(element, 'chr', '∫')}{_scripts(element)} {_part(element, 'e')}",
    "d": _delimited,
    "func": _function,
    "m": _matrix,
    "eqArr": lambda element: "; ".join(office_formula(part).strip() for part in element.findall(M + "e")),
    "acc": lambda element: _part(element, "e") + _option(element, "chr", "\u0302"),
    "bar": lambda element: _part(element, "e") + "\u0305",
    "limLow": lambda element: f"{_part(element, 'e')}_{group(_part(element, 'lim'))}",
    "limUpp": lambda element: f"{_part(element, 'e')}^{group(_part(element, 'lim'))}",
}


def mathml_formula(element: Element) -> str:
    """Return the text of a formula in MathML, or of a part of it; annotations are left out."""
    tag = element.tag
    name = tag.rpartition("}")[2] if isinstance(tag, str) else "annotation"
    if name.startswith("annotation"):
        return ""
    if name in ("mi", "mn", "mo", "mtext", "ms"):
        text = " ".join("".join(element.itertext()).split())
        return f" {text} " if name == "mtext" else "".join(char for char in text if char not in _INVISIBLE)
    parts = [mathml_formula(child).strip() for child in element]
    if name == "msqrt":
        return f"√({''.join(parts)})"
    if name == "mtable":
        return "; ".join(parts)
    if name == "mtr":
        return ", ".join(parts)
    shape = _MATHML.get((name, len(parts)))
    if shape is not None:
        return shape.format(*parts, *map(group, parts))
    if name == "mfenced":
        return f"{element.get('open', '(')}{element.get('separators', ',')[:1].join(parts)}{element.get('close', ')')}"
    return "".join(mathml_formula(child) for child in element)


_INVISIBLE = "\u2061\u2062\u2063\u2064"
_MATHML = {
    ("mfrac", 2): "{2}/{3}",
    ("msup", 2): "{2}^{3}",
    ("msub", 2): "{2}_{3}",
    ("msubsup", 3): "{3}_{4}^{5}",
    ("mroot", 2): "({0})^(1/{3})",
    ("munder", 2): "{0}_{3}",
    ("mover", 2): "{0}{1}",
    ("munderover", 3): "{0}_{4}^{5} ",
}
"""The forms of elements with so many children: each as it is, then each in parentheses where it needs them."""
