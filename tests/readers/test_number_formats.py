"""Numbers are shown as a spreadsheet shows them."""

from __future__ import annotations

import pytest

from ragistry.readers.number_formats import BUILT_IN, format_number, format_text

ACCOUNTING = '_-* #,##0.00_-;-* #,##0.00_-;_-* "-"??_-;_-@_-'
DOLLARS = '"$"#,##0.00_);\\("$"#,##0.00\\)'
SHOWN = [
    (0.425, "0.0%", "42.5%"),
    (0.42, "0%", "42%"),
    (-0.05, "0.0%", "-5.0%"),
    (1234567, "00000000", "01234567"),
    (123456789, "000-00-0000", "123-45-6789"),
    (5551234567, "(000) 000-0000", "(555) 123-4567"),
    (12, "000,000", "000,012"),
    (1, "0000.0", "0001.0"),
    (1234567.891, "#,##0.00", "1,234,567.89"),
    (1234, "0,000", "1,234"),
    (1500000, '0.0,,"M"', "1.5M"),
    (2.675, "0.00", "2.68"),
    (0.5, "#.##", ".5"),
    (3.1, "0.0#", "3.1"),
    (0, "#", "0"),
    (-0.0001, "0.0", "0.0"),
    (1234.5, '#,##0.00\\ "€"', "1,234.50 €"),
    (1234.5, "[$€-407]\\ #,##0.00", "€ 1,234.50"),
    (-1234.5, DOLLARS, "($1,234.50)"),
    (-5, "#,##0;[Red]-#,##0", "-5"),
    (0, ACCOUNTING, "-"),
    (-1234.5, ACCOUNTING, "-1,234.50"),
    (12345, "0.00E+00", "1.23E+04"),
    (0.00012, "0.0E+0", "1.2E-4"),
    (999.96, "0.0E+0", "1.0E+3"),
    (3, '0 "kg"', "3 kg"),
    (1, '"Yes";"No";"None"', "Yes"),
    (0, '"Yes";"No";"None"', "None"),
    (-1, '"Yes";"No"', "No"),
    (5, "[<10]0.0;0", "5.0"),
    (50, "[<10]0.0;0", "50"),
    (14.5 / 24, "h:mm", "14:30"),
    (14.5 / 24, "hh:mm:ss", "14:30:00"),
    (0.75, "h:mm AM/PM", "6:00 PM"),
    (0.25, "h:mm AM/PM", "6:00 AM"),
    (1.5, "[h]:mm", "36:00"),
    (90 / 1440, "[m]", "90"),
    (65 / 86400, "mm:ss", "01:05"),
    (65.25 / 86400, "mm:ss.0", "01:05.3"),
    (45441, "yyyy-mm-dd", "2024-05-29"),
    (45441, "dd.mm.yyyy", "29.05.2024"),
    (45441, "d mmm yyyy", "29 May 2024"),
    (45441, "[$-409]dddd, mmmm dd, yyyy", "Wednesday, May 29, 2024"),
    (45441, 'yyyy"年"m"月"d"日"', "2024年5月29日"),
    (45441, "[$-F800]dddd, mmmm dd, yyyy", "2024-05-29"),
    (45441.604166666664, "dd/mm/yyyy hh:mm", "29/05/2024 14:30"),
    (1, "d/m/yyyy", "1/1/1900"),
    (61, "d/m/yyyy", "1/3/1900"),
    (7, "General", "7"),
    (0.1 + 0.2, "General", "0.3"),
    (1234567890123, "General", "1234567890123"),
    (14, "@", "14"),
    (1.25, "# ??/??", "1 1/4"),
    (0.333, "# ?/8", "3/8"),
    (-1.5, "# ?/?", "-1 1/2"),
    (0.999, "# ?/?", "1"),
    (3.14159265, "# ???/???", "3 16/113"),
    (0, "# ?/?", "0"),
    (0.02, "# ?/?", "0"),
    (99.99, "# ?/?", "100"),
    (-0.25, "# ?/4", "-1/4"),
    (12.0625, "# ?/16", "12 1/16"),
    (0.04, "# ??/100", "4/100"),
    (7.25, "?/?", "29/4"),
    (1.5, "0 0/0", "1 1/2"),
    (0.5, "0 ?/?", "0 1/2"),
    (1234.5, "#,##0 ?/?", "1,234 1/2"),
    (2.125, '# ?/?" in"', "2 1/8 in"),
    (-0.25, "# ?/?;[Red]-# ?/?", "-1/4"),
]
AS_STORED = [
    (0.5, "?/", "0.5"),
    (0.5, "/?", "0.5"),
    (5, ";;;", "5"),
    (-3, "yyyy", "-3"),
    (1e9, "yyyy", "1000000000"),
    (7, "bbbb", "7"),
]


@pytest.mark.parametrize(("value", "code", "text"), SHOWN)
def test_a_number_is_shown_by_its_format(value: float, code: str, text: str) -> None:
    assert format_number(value, code) == text


@pytest.mark.parametrize(("value", "code", "text"), AS_STORED)
def test_a_number_that_a_format_cannot_show_is_shown_as_stored(value: float, code: str, text: str) -> None:
    assert format_number(value, code) == text


def test_days_may_be_counted_from_1904() -> None:
    assert format_number(0, "yyyy-mm-dd", date1904=True) == "1904-01-01"


def test_text_has_a_format_too() -> None:
    assert format_text("Ann", '"Dr. "@') == "Dr. Ann"
    assert format_text("Ann", "0.00") == "Ann"


def test_no_format_code_fails() -> None:
    for code in [
        *BUILT_IN.values(),
        "",
        "[",
        '"',
        "\\",
        "0.0.0",
        "[<",
        "E+",
        "?/",
        "/?",
        "?/?/?",
        "# ?/0",
        ";",
        "?",
        ",,,",
        "%",
        "[$",
        "0E",
        "a" * 999,
    ]:
        for value in (0.0, -1.5, 1e300, float("inf"), 45441.5):
            assert isinstance(format_number(value, code), str)
