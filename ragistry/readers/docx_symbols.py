"""The characters of the symbol fonts of Office."""

from __future__ import annotations

import re

_GREEK = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001
_SIGNS = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"  # noqa: RUF001
SYMBOLS: dict[str, dict[int, str]] = {
    "symbol": dict(enumerate(_GREEK, 0x20)) | dict(enumerate(_SIGNS, 0xA0)),
    "wingdings": dict(
        zip(
            b"\x28\x2a\x46\x4a\x4c\x6c\x6e\x6f\x71\x76\x78\x9f\xa7\xa8\xd8\xdf\xe0\xe1\xe2\xe8\xef\xf0\xfb\xfc\xfd\xfe",
            "☎✉☞☺☹●■☐❑❖☒•▪☐➢←→↑↓➔⇦⇨✘✔☒☑",
            strict=True,
        )
    ),
    "wingdings 2": dict(zip(b"\x4f\x50\x51\x52\x53\x54\xa3", "✘✔☒☑☒☒☐", strict=True)),
    "wingdings 3": {},
    "webdings": {},
}
PRIVATE_USE = re.compile("[\uf020-\uf0ff]")


def symbol(font: str, code: int) -> str | None:
    """Return the character of a symbol font; an empty text for an unknown pictogram, None for an unknown font."""
    table = SYMBOLS.get(font.lower())
    if table is not None:
        return table.get(code & 0xFF, "")
    return chr(code) if 0x20 <= code < 0xD800 or 0xF900 <= code < 0xFFFE else None
