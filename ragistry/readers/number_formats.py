"""Format numbers as a spreadsheet shows them, by the format codes of Excel."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

GENERAL = "General"
BUILT_IN = {
    0: GENERAL,
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: '"$"#,##0_);\\("$"#,##0\\)',
    6: '"$"#,##0_);\\("$"#,##0\\)',
    7: '"$"#,##0.00_);\\("$"#,##0.00\\)',
    8: '"$"#,##0.00_);\\("$"#,##0.00\\)',
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm",
    37: "#,##0_);(#,##0)",
    38: "#,##0_);(#,##0)",
    39: "#,##0.00_);(#,##0.00)",
    40: "#,##0.00_);(#,##0.00)",
    41: "#,##0_);(#,##0)",
    42: '"$"#,##0_);("$"#,##0)',
    43: "#,##0.00_);(#,##0.00)",
    44: '"$"#,##0.00_);("$"#,##0.00)',
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    49: "@",
}
"""Format codes by their numbers; 14 and 22 depend on the settings of the computer and are written as in ISO 8601."""

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|\*.|\[(?P<bracket>[^\]]*)\]|(?P<general>General)'
    r"|(?P<half>AM/PM|A/P)|(?P<exponent>E[+-]0+)|(?P<second>s+(?:\.0+)?)|(?P<date>y+|m+|d+|h+|e+|b+|g+)"
    r"|(?P<digits>[0#?]+)|(?P<comma>,)|(?P<point>\.)|(?P<percent>%)|(?P<text>@)|(?P<slash>/)|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d+(?:\.\d+)?)$")
_COMPARE = {"<": lt, ">": gt, "<=": le, ">=": ge, "=": eq, "<>": ne}
_THOUSANDS = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_LAST_DAY = 2_958_465  # 9999-12-31
_DATE_KINDS = {"date", "second", "half", "elapsed"}
_LONGEST = 400
_SIMPLE = re.compile(r"(?P<grouped>#,##)?0(?:\.(?P<places>0{1,12}))?(?P<percent>%)?$")


class _Part(NamedTuple):
    kind: str
    text: str


class _Section(NamedTuple):
    parts: tuple[_Part, ...]
    condition: tuple[str, float] | None


def format_number(value: float, code: str, *, date1904: bool = False) -> str:
    """Return a number as a cell with this format shows it; in an unknown format as it is stored.

    Args:
        value: The number; a date is a number of days.
        code: Format code, such as ``"0.0%"`` or ``"dd.mm.yyyy"``.
        date1904: Days are counted from 1904 instead of 1900.
    """
    if value - value != 0:  # not finite
        return str(value)
    if code == GENERAL or not code:
        return general(value)
    if simple := _simple(code):
        grouped, places, percent = simple
        scaled = value * (1 + 1e-15) * (100 if percent else 1)  # a half is rounded up, as in 2.675, which is a bit less
        if abs(scaled) < 1e15:
            shown = f"{scaled:{grouped}.{places}f}"
            return (shown.replace("-", "") if not float(shown.replace(",", "")) else shown) + percent
    try:
        section, negated = _choose(value, _sections(code))
        if any(part.kind in _DATE_KINDS for part in section.parts):
            shown = _date_text(value, section.parts, date1904)
        else:
            shown = _number_text(abs(value) if negated else value, section.parts).strip()
    except (ValueError, ArithmeticError, IndexError):
        return general(value)
    return shown if shown.strip() else general(value)  # a format that hides values does not hide them from a search


def format_text(text: str, code: str) -> str:
    """Return a text as a cell with this format shows it."""
    if "@" not in code or code == "@":
        return text
    section = _sections(code)[-1]
    if not any(part.kind == "text" for part in section.parts):
        return text
    return "".join(text if part.kind == "text" else part.text for part in section.parts)


def general(value: float) -> str:
    """Return a number without a format: up to 15 digits, as they are stored."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15G}"


@lru_cache(maxsize=1_000)
def _simple(code: str) -> tuple[str, int, str] | None:
    """Thousands separator, decimals and percent sign of the most frequent formats, which are fast."""
    found = _SIMPLE.match(code)
    return ("," if found["grouped"] else "", len(found["places"] or ""), found["percent"] or "") if found else None


@lru_cache(maxsize=1_000)
def _sections(code: str) -> tuple[_Section, ...]:
    sections: list[_Section] = []
    parts: list[_Part] = []
    condition: tuple[str, float] | None = None
    for token in _TOKEN.finditer(code[:_LONGEST]):
        kind, text = token.lastgroup or "", token[token.lastgroup] if token.lastgroup else ""
        if kind == "other" and text == ";":
            sections.append(_Section(_with_minutes(parts), condition))
            parts, condition = [], None
        elif kind == "bracket":
            if found := _CONDITION.match(text):
                condition = found[1], float(found[2])
            elif text.startswith("$"):
                if text.upper().startswith(("$-F800", "$-X-SYSDATE")):
                    parts.append(_Part("system", "date"))
                parts.append(_Part("literal", text[1:].partition("-")[0]))
            elif text and set(text.lower()) <= {text[0].lower()} and text[0].lower() in "hms":
                parts.append(_Part("elapsed", text.lower()))
        elif kind in ("quoted", "escaped", "other"):
            parts.append(_Part("literal", text))
        elif kind:
            parts.append(_Part(kind, text.lower() if kind in ("date", "second") else text))
        elif token[0].startswith("_") and parts:
            parts.append(_Part("literal", " "))
    sections.append(_Section(_with_minutes(parts), condition))
    return tuple(sections)


def _with_minutes(parts: list[_Part]) -> tuple[_Part, ...]:
    """Return the parts of a section, in which ``m`` after hours or before seconds is minutes."""
    if parts and parts[0].kind == "system":
        return _sections("yyyy-mm-dd")[0].parts
    dates = [number for number, part in enumerate(parts) if part.kind in _DATE_KINDS and part.kind != "half"]
    texts = ["", *(parts[number].text for number in dates), ""]
    found = list(parts)
    for number, before, text, after in zip(dates, texts, texts[1:], texts[2:], strict=False):
        is_month = parts[number].kind == "date" and text in ("m", "mm")
        if is_month and (before.startswith("h") or after.startswith("s")):
            found[number] = _Part("minute", text)
    return tuple(part for part in found if part.kind != "system")


def _choose(value: float, sections: tuple[_Section, ...]) -> tuple[_Section, bool]:
    """Return the section for a number, and whether it shows a negative number without a sign."""
    numeric = sections[:3]
    if any(section.condition for section in numeric):
        for section in numeric:
            if section.condition is None or _COMPARE[section.condition[0]](value, section.condition[1]):
                return section, value < 0 and section is not numeric[0]
        return numeric[-1], False
    if any(part.kind == "text" for part in numeric[-1].parts) and len(numeric) > 1:
        numeric = numeric[:-1]
    if value < 0 and len(numeric) > 1:
        return numeric[1], True
    if value == 0 and len(numeric) > 2:
        return numeric[2], False
    return numeric[0], False


def _number_text(value: float, parts: tuple[_Part, ...]) -> str:
    kinds = [part.kind for part in parts]
    if "general" in kinds or kinds == ["text"]:
        return "".join(general(value) if part.kind in ("general", "text") else part.text for part in parts)
    if "slash" in kinds and "digits" in kinds:
        return _fraction(value, parts, kinds.index("slash"))
    if "digits" not in kinds:
        sign = "-" if value < 0 else ""
        return sign + "".join(part.text for part in parts if part.kind in ("literal", "percent", "point", "comma"))
    number = Decimal(format(value, ".15g"))
    number *= 100 ** kinds.count("percent")
    places = [at for at, kind in enumerate(kinds) if kind == "digits"]
    first, last = places[0], places[-1]
    point = kinds.index("point") if "point" in kinds else len(kinds)
    scale = 0
    before = (point if first < point < len(kinds) else last + 1) - 1
    while before > first and kinds[before] == "comma":
        scale, before = scale + 1, before - 1
    after = last + 1
    while after < len(kinds) and kinds[after] == "comma":
        scale, after = scale + 1, after + 1
    number /= 1000**scale
    grouped = any(kinds[at] == "comma" for at in range(first, before + 1))
    whole, fraction = [at for at in places if at < point], [at for at in places if at > point]
    if "exponent" in kinds:
        return _scientific(number, parts, whole, fraction, kinds.index("exponent"))
    number = number.quantize(Decimal(1).scaleb(-sum(len(parts[at].text) for at in fraction)), ROUND_HALF_UP)
    sign = "-" if number < 0 else ""
    digits, _, decimals = format(abs(number), "f").partition(".")
    return sign + _placed(parts, digits.lstrip("0"), decimals, whole, fraction, grouped)


def _fraction(value: float, parts: tuple[_Part, ...], slash: int) -> str:
    """Return a number as a whole number and the nearest fraction, or as a fraction alone in a format without ``# ``."""
    before = [at for at in range(slash) if parts[at].kind == "digits"]
    numerator, end = before[-1], slash + 1
    while end < len(parts) and (parts[end].kind == "digits" or parts[end].text.isdecimal()):
        end += 1
    below = "".join(part.text for part in parts[slash + 1 : end])
    if not below:
        raise ValueError("a fraction without a denominator")
    number = Fraction(format(abs(value), ".15g"))
    whole = int(number) if before[:-1] else 0
    if below.isdecimal() and int(below):
        denominator = int(below)
        above = int((number - whole) * denominator + Fraction(1, 2))
    else:
        nearest = (number - whole).limit_denominator(10 ** min(len(below), 7) - 1)
        above, denominator = nearest.numerator, nearest.denominator
    if before[:-1] and above == denominator:
        whole, above = whole + 1, 0
    shown = {numerator: f"{above}/{denominator}"}
    if before[:-1]:
        slots = "".join(parts[at].text for at in before[:-1])
        grouped = any(part.kind == "comma" for part in parts[:numerator])
        digits = f"{whole:,}" if grouped else f"{whole:0{slots.count('0')}d}"
        shown[before[0]] = f"{digits} " if whole or not above or "0" in slots else ""
        if not above and not (set(parts[numerator].text) | set(below)) - {"?", "#", *"123456789"}:
            del shown[numerator]
    text = "".join(
        shown.get(at, part.text if part.kind == "literal" else "")
        for at, part in enumerate(parts)
        if not numerator < at < end and (part.text.strip() or not before[0] < at < numerator)
    )
    sign = "-" if value < 0 and (whole or above) else ""
    return sign + " ".join(text.split())


def _placed(
    parts: tuple[_Part, ...], digits: str, decimals: str, whole: list[int], fraction: list[int], grouped: bool
) -> str:
    """Put digits at their places, with the literals between them."""
    slots, places = ("".join(parts[at].text for at in side) for side in (whole, fraction))
    over = max(0, len(digits) - len(slots))  # digits for which the format has no place stand before the first one
    filled = ["0" if slot == "0" else "" for slot in slots[: max(0, len(slots) - len(digits))]]
    filled += [digits[: over + 1], *digits[over + 1 :]]
    if grouped:
        filled = [*[""] * (len(slots) - 1), _THOUSANDS.sub(",", "".join(filled))]
    kept = len(decimals)
    while kept and places[kept - 1] != "0" and decimals[kept - 1] == "0":
        kept -= 1
    left, right, text = iter(filled), iter(decimals[:kept]), ""
    for at, part in enumerate(parts):
        if at in whole or at in fraction:
            text += "".join(islice(left if at in whole else right, len(part.text)))
        elif part.kind == "point":
            text += "." if kept or not fraction or "?" not in places else ""
        elif part.kind in ("literal", "percent"):
            text += part.text
    return text


def _scientific(number: Decimal, parts: tuple[_Part, ...], whole: list[int], fraction: list[int], exponent: int) -> str:
    step = max(1, sum(len(parts[at].text) for at in whole))
    places = sum(len(parts[at].text) for at in fraction if at < exponent)
    power = number.adjusted() if number else 0
    power -= power % step
    mantissa = (number.scaleb(-power)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    if mantissa.adjusted() >= step and number:
        power += step
        mantissa = number.scaleb(-power).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    mark = parts[exponent].text
    sign = "-" if power < 0 else "+" if mark[1] == "+" else ""
    width = len(mark) - 2
    tail = "".join(part.text for part in parts[exponent + 1 :] if part.kind in ("literal", "percent"))
    return f"{format(mantissa, 'f')}{mark[0]}{sign}{abs(power):0{width}d}{tail}"


def _date_text(value: float, parts: tuple[_Part, ...], date1904: bool) -> str:
    kinds = {part.kind for part in parts}
    fractions = max((len(part.text.partition(".")[2]) for part in parts if part.kind == "second"), default=0)
    scale = 10 ** min(fractions, 6)
    total = int(Decimal(format(abs(value) * 86_400 * scale, ".15g")).quantize(Decimal(1), ROUND_HALF_UP))
    seconds, below = divmod(total, scale)
    if value < 0 and "elapsed" not in kinds:
        raise ValueError("a date before the first one")
    days, seconds_of_day = divmod(seconds, 86_400)
    hour, minute, second = seconds_of_day // 3600, seconds_of_day // 60 % 60, seconds_of_day % 60
    shown_hour = (hour % 12 or 12) if "half" in kinds else hour
    day = _day(days, date1904) if any(part.kind == "date" and part.text[0] in "ymdeg" for part in parts) else date.min
    text = ""
    for part in parts:
        size = len(part.text)
        if part.kind == "date":
            text += _date_part(part.text, day, shown_hour)
        elif part.kind == "minute":
            text += f"{minute:0{min(size, 2)}d}"
        elif part.kind == "second":
            whole, _, places = part.text.partition(".")
            text += f"{second:0{min(len(whole), 2)}d}"
            text += f".{below:0{fractions}d}"[: len(places) + 1] if places else ""
        elif part.kind == "elapsed":
            text += f"{seconds // {'h': 3600, 'm': 60, 's': 1}[part.text[0]]:0{size}d}"
        elif part.kind == "half":
            text += part.text.split("/")[hour >= 12]
        elif part.kind not in ("text", "digits"):
            text += part.text
    return ("-" if value < 0 else "") + " ".join(text.split())


def _day(days: int, date1904: bool) -> date:
    if days > _LAST_DAY:
        raise ValueError("a date after the last one")
    if date1904:
        return date(1904, 1, 1) + timedelta(days)
    return date(1899, 12, 30 if days > 59 else 31) + timedelta(days)


def _date_part(token: str, day: date, hour: int) -> str:
    size = len(token)
    match token[0]:
        case "y" | "e":
            return f"{day.year % 100:02d}" if size <= 2 and token[0] == "y" else str(day.year)
        case "m":
            name = _MONTHS[day.month - 1]
            return {1: str(day.month), 2: f"{day.month:02d}", 3: name[:3], 5: name[0]}.get(size, name)
        case "d":
            name = _DAYS[day.weekday()]
            return {1: str(day.day), 2: f"{day.day:02d}", 3: name[:3]}.get(size, name)
        case "h":
            return f"{hour:0{min(size, 2)}d}"
    raise ValueError("a calendar that is not known")
