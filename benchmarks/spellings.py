"""Whether words are found however they are written: ``python -m benchmarks.spellings [--quick]``.

Each text of `CASES` is searched by another spelling among 100 others and must be the first result. Of the two texts of
a case of `EXACT`, the one with the spelling of the query must be first.
"""

# ruff: noqa: RUF001 - many scripts is what this is about

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk

CASES: dict[str, list[tuple[str, str, str]]] = {
    "letters without decomposition": [
        ("Lodz", "Trains to Łódź leave every hour.", "none"),
        ("Soren", "A letter from Søren arrived.", "danish"),
        ("Malmo smorgas", "Smørgås i Malmø.", "danish"),
        ("dakovo", "The road to Đakovo is closed.", "none"),
        ("Ghawdex hobz", "Ħobż minn Għawdex.", "none"),
        ("Tallinn oun", "Õun Tallinnas.", "estonian"),
        ("Isparta kirmizi", "Isparta'da kırmızı gül.", "turkish"),
        ("hausa karfe", "Hausa: ƙarfe ɗaya.", "none"),
        ("Azerbaycan", "Azərbaycan neftlə zəngindir.", "none"),
        ("Hawaii", "Volcanoes of Hawaiʻi are active.", "none"),
        ("казакстан", "Қазақстан тарихы.", "none"),
        ("lodz mieszka", "Ona mieszka w Łodzi, czyli Łódź.", "polish"),
    ],
    "ligature letters": [
        ("encyclopaedia", "An encyclopædia of insects.", "none"),
        ("oeuvre", "Son œuvre est célèbre.", "french"),
        ("strasse", "Die Straße ist gesperrt.", "german"),
        ("Thingvellir", "Þingvellir is a valley.", "none"),
        ("ijssel", "De ĳssel stroomt.", "dutch"),
        ("efficient offline", "Eﬃcient oﬄine sorting.", "english"),
        ("aero island", "Ærø island ferry.", "none"),
    ],
    "marks and strokes": [
        ("محمد", "كتب مُحَمَّد رسالة", "arabic"),
        ("سلام", "قال ســـلام ثم ذهب", "arabic"),
        ("كِتَاب", "هذا كتاب قديم", "none"),
        ("שלום", "אמר שָׁלוֹם והלך", "none"),
        ("בְּרֵאשִׁית", "בראשית ברא", "none"),
        ("احمد", "زار أحمد القاهرة", "none"),
        ("گربه ایران", "گربهٔ ايران", "none"),
        ("בית ספר", "בית־ספר חדש", "none"),
    ],
    "digits of every script": [
        ("2024", "صدر عام ٢٠٢٤ تقرير", "arabic"),
        ("1398", "سال ۱۳۹۸ خورشیدی", "persian"),
        ("15", "१५ अगस्त को", "hindi"),
        ("365", "๓๖๕ วัน", "none"),
        ("٤٢٩", "The server answered 429 again.", "english"),
        ("8080", "ポート８０８０を使う", "none"),
        ("3 1971", "৩ মার্চ ১৯৭১", "none"),
    ],
    "identifiers": [
        ("refreshAccessToken", "Call refreshAccessToken() before it expires.", "english"),
        ("access token refresh", "Use refreshAccessTokenNow here.", "english"),
        ("setMaxAttempts", "Give set_max_attempts a number.", "english"),
        ("set_pool_retries", "Then setPoolRetries(5) applies.", "english"),
        ("idle hosts", "obj.setIdleHostsPerZone(2);", "english"),
        ("dom request", "new SVGDomRequest();", "english"),
        ("xml_http_request", "An XMLHttpRequest object.", "english"),
        ("nn.functional", "import torch.nn.functional as F", "english"),
        ("torch.nn.modules", "See torch.nn.modules for layers.", "english"),
        ("read-only-mode", "readOnlyMode = true", "english"),
        ("MAX_POOL_SIZE", "maxPoolSize: 10", "english"),
        ("userIds", "SELECT user_ids FROM t", "english"),
        ("parse url", "parseURL(address)", "english"),
        ("größe berechnen", "int größeBerechnen()", "german"),
        ("getitem", "def __getitem__(self)", "english"),
    ],
    "joined and hyphenated": [
        ("eshop", "Order in the e-shop of the office.", "english"),
        ("e-mail address", "The email address is public.", "english"),
        ("pay wall", "The paywall is gone.", "english"),
        ("plugin", "Install the plug-in first.", "english"),
        ("add on", "The addon crashed.", "english"),
        ("LNT1042", "Part LNT-1042 is on stock.", "english"),
        ("LNT 1043", "Part LNT-1043 is sold out.", "english"),
        ("LNT-1044", "Part LNT1044 was replaced.", "english"),
        ("LNT 1045", "Part LNT1045 was recalled.", "english"),
        ("wifi", "The Wi-Fi password changed.", "english"),
        ("cooperate", "They co-operate closely.", "english"),
        ("re-index", "Reindex the table nightly.", "english"),
        ("USA", "Shipped to the U.S.A. by sea.", "english"),
        ("non‑profit", "A nonprofit hospital.", "english"),
        ("T-Shirts", "TShirts aus Baumwolle", "german"),
        ("tcpip", "A TCP/IP stack.", "english"),
        ("B&B", "A BB near the lake.", "english"),
        ("978 3 16 148410 0", "ISBN 9783161484100 is in print.", "english"),
        ("col·lecció", "Una collecció nova.", "none"),
    ],
    "letters and digits": [
        ("500 GB", "A disk of 500GB is enough.", "english"),
        ("250GB", "A disk of 250 GB is small.", "english"),
        ("HTTP 429", "It failed with HTTP429.", "english"),
        ("HTTP503", "It failed with HTTP 503.", "english"),
        ("rtx 4090", "One RTX4090 card.", "english"),
        ("utf 8", "Encoded as UTF8.", "english"),
        ("iso27001", "Certified by ISO 27001.", "english"),
        ("75 kg", "Load: 75kg.", "english"),
        ("5G", "A mast for 5 G radio.", "english"),
        ("Artikel 12b", "Artikel12b gilt.", "german"),
    ],
    "grouped digits": [
        ("1000", "It costs 1,000 a month.", "english"),
        ("26 700", "It costs 26700 a month.", "english"),
        ("3000", "Il coûte 3 000 francs.", "french"),
        ("4,000", "It costs 4 000 a month.", "english"),
        ("1250", "Der Preis ist 1.250,00 Euro.", "german"),
        ("1,350.00", "Der Preis ist 1.350,00 Euro.", "german"),
        ("1450", "Der Wert ist 1.450 genau.", "german"),
        ("1.550", "Der Wert ist 1,550 genau.", "german"),
        ("1234567", "Es sind 1'234'567 Zeilen.", "german"),
        ("100000", "It sold 1,00,000 copies.", "english"),
        ("7654321", "Population: 7 654 321.", "english"),
        ("10000000", "timeout = 10_000_000", "english"),
        ("3.75", "Der Zins ist 3,75 Prozent.", "german"),
    ],
    "prices": [
        ("1299", "It costs $1,299.99 today.", "english"),
        ("1,399.99", "It costs 1399.99 today.", "english"),
        ("1499", "Er kostet 1.499,99 € heute.", "german"),
        ("1599", "Il coûte 1 599,99 euros.", "french"),
        ("1699.95", "Es kostet 1'699.95 Franken.", "german"),
        ("1 799,50", "It costs 1799.50 today.", "english"),
        ("700000", "It costs ₹7,00,000.50 today.", "english"),
    ],
    "telephone numbers": [
        ("0800123456", "Call 0800/123-456 now.", "english"),
        ("0800123457", "Call (0800) 123 457 now.", "english"),
        ("0800123458", "Call +49 800 123 458 now.", "english"),
        ("0711 446 459", "Call +49 (0)711 446459 now.", "english"),
        ("0800/123-460", "Call 0049 800 123460 now.", "english"),
        ("+49 800 123461", "Call 0800 123461 now.", "english"),
        ("(800) 555-0199", "Call 800.555.0199 now.", "english"),
        ("8005550198", "Call +1 (800) 555-0198 now.", "english"),
        ("0123456789", "Appelez le 01 23 45 67 89.", "french"),
    ],
    "hardware addresses": [
        ("001a2b3c4d5e", "The port has 00:1A:2B:3C:4D:5E today.", "english"),
        ("00:1a:2b:3c:4d:5f", "The port has 00-1A-2B-3C-4D-5F today.", "english"),
        ("00-1a-2b-3c-4d-60", "The port has 001A.2B3C.4D60 today.", "english"),
        ("001a.2b3c.4d61", "The port has 001a2b3c4d61 today.", "english"),
        ("AC:DE:48", "The prefix is ACDE48 today.", "english"),
    ],
    "times": [
        ("14:05", "The train leaves at 14.05 today.", "english"),
        ("15:05", "The train leaves at 3:05 pm today.", "english"),
        ("16:05", "Le train part à 16h05 demain.", "french"),
        ("4:15 PM", "The train leaves at 16:15 today.", "english"),
        ("0905", "The train leaves at 9:05 today.", "english"),
        ("10:30", "At 2021-02-09T10:30:00Z it stopped.", "english"),
    ],
    "units": [
        ("10uF", "A capacitor of 10 µF and 9 V.", "english"),
        ("1240 uF", "A capacitor of 1240µF and 9 V.", "english"),
        ("5GB", "A disk of 5 GB is small.", "english"),
        ("7 kHz", "A tone of 7kHz is deep.", "english"),
        ("3.3kohm", "A resistor of 3.3 kΩ is there.", "english"),
        ("60m²", "A flat of 60 m2 is small.", "english"),
        ("250us", "It takes 250 µs to start.", "english"),
    ],
    "symbols": [
        ("🍐", "A 🍐 is ripe.", "english"),
        ("👍", "Fine 👍🏽 by me.", "english"),
        ("💻", "Work 👩‍💻 here.", "english"),
        ("🇩🇰", "From 🇩🇰 with love.", "english"),
        ("∑ →", "Then ∑→x follows.", "english"),
    ],
    "hexadecimal": [
        ("1F4A", "Write to 0x1F4A now.", "english"),
        ("0xBEEF", "The marker is BEEF here.", "english"),
        ("0xdead01", "Read 0XDEAD01 again.", "english"),
        ("80070005", "Error 0x80070005 appeared.", "english"),
        ("0x1c2", "Offset 0x01C2 is wrong.", "english"),
    ],
    "dates": [
        ("20240506", "Released on 2024-05-06 worldwide.", "english"),
        ("2023-04-07", "backup_20230407.tar", "english"),
        ("2022/03/08", "Signed 2022-03-08 in Bern.", "english"),
        ("2025-12-24", "Am 24.12.2025 geschlossen.", "german"),
        ("2021-02-09", "At 2021-02-09T10:30:00Z it stopped.", "english"),
        ("20200110", "At 2020-01-10T00:00Z it began.", "english"),
    ],
    "versions": [
        ("v1.5.9", "Fixed in v1.5.9 only.", "english"),
        ("3.12", "Runs on Python 3.12 too.", "english"),
        ("10.4.2-beta", "Version 10.4.2-beta is out.", "english"),
    ],
    "composed and decomposed": [
        ("Cafe\u0301 Zu\u0308rich", "Das Café Zürich öffnet.", "german"),
        ("Ångström", "A\u030angstro\u0308m units.", "none"),
        ("tiê\u0301ng Việt", "Tiếng Vie\u0323\u0302t", "none"),
        ("한국어", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 책", "none"),
    ],
}
"""Query, text and language, by kind."""

EXACT = [
    ("email server", "email server", "e-mail server"),
    ("e-mail server", "e-mail server", "email server"),
    ("plug-in", "plug-in", "plugin"),
    ("plugin", "plugin", "plug-in"),
    ("setMaxAttempts", "setMaxAttempts", "set_max_attempts"),
    ("set_max_attempts", "set_max_attempts", "setMaxAttempts"),
    ("access token", "access token", "refreshAccessToken"),
    ("500GB", "500GB", "500 GB"),
    ("500 GB", "500 GB", "500GB"),
    ("LNT-1042", "LNT-1042", "LNT1042"),
    ("1.250", "1.250", "1250"),
    ("1250", "1250", "1.250"),
    ("1,000", "1,000", "1000"),
    ("1,000", "1,000", "1 000"),
    ("1 000", "1 000", "1000"),
    ("1 000", "1 000", "1,000"),
    ("1 000 francs", "1 000 francs", "1000 francs"),
    ("1000", "1000", "1 000"),
    ("2 500 000", "2 500 000", "2500000"),
    ("2 500 000", "2 500 000", "2'500'000"),
    ("2'500'000", "2'500'000", "2,500,000"),
    ("3,75", "3,75", "3.75"),
    ("3.75", "3.75", "3,75"),
    ("HTTP 429", "HTTP 429", "HTTP429"),
    ("plug in", "plug in", "plug-in"),
    ("plug in", "plug in", "plugin"),
    ("0x1F4A", "0x1F4A", "1F4A"),
    ("14:05", "14:05", "14.05"),
    ("14.05", "14.05", "14:05"),
    ("$1,299.99", "$1,299.99", "$1299.99"),
    ("1299", "1299", "$1,299.99"),
    ("10uF", "10uF", "10 µF"),
    ("10 µF", "10 µF", "10uF"),
    ("0800/123-456", "0800/123-456", "(0800) 123 456"),
    ("00:1a:2b:3c:4d:5e", "00:1a:2b:3c:4d:5e", "00-1a-2b-3c-4d-5e"),
    ("👍🏽", "👍🏽", "👍"),
    ("20240506", "20240506", "2024-05-06"),
    ("2024-05-06", "2024-05-06", "20240506"),
]
"""Query, the same spelling, another one."""

OTHERS = [
    f"Paragraph {number} is about gardens, mail, files, tokens and number {number * 37}." for number in range(100)
]
VECTOR = [1.0, 0.0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="print only the numbers")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        rows, exact = ranks(Path(folder)), exact_ranks(Path(folder))
    if not quick:
        print("| kind | query | text | rank |\n|---|---|---|--:|")
        for kind, query, text, rank in rows:
            print(f"| {kind} | {query} | {text} | {rank or 'not found'} |")
    print(f"\nfirst: {sum(rank == 1 for *_, rank in rows)} of {len(rows)}")
    print(f"the spelling of the query is first: {sum(rank == 1 for _, rank in exact)} of {len(exact)}")
    wrong = [row for row in (*rows, *exact) if row[-1] != 1]
    sys.exit(f"not first: {wrong}" if wrong else 0)


def ranks(folder: Path) -> list[tuple[str, str, str, int]]:
    """Return kind, query and text of each case, and the rank of the text in a word search; 0 if it is not found."""
    languages = dict.fromkeys(language for cases in CASES.values() for *_, language in cases)
    found = []
    for language in languages:
        rows = [(kind, *case[:2]) for kind, cases in CASES.items() for case in cases if case[2] == language]
        with _store(folder / language, [*(text for *_, text in rows), *OTHERS], language) as store:
            found += [(kind, query, text, _rank(store, query, text)) for kind, query, text in rows]
    return found


def exact_ranks(folder: Path) -> list[tuple[str, int]]:
    """Return the query of each pair of `EXACT`, and the rank of the text with its spelling."""
    found = []
    for number, (query, *spelled) in enumerate(EXACT):
        texts = [f"The {word} of today." for word in spelled]
        with _store(folder / f"exact{number}", [texts[1], texts[0], *OTHERS], "english") as store:
            both = len(store.search_text(query, 10)) > 1
            found.append((query, _rank(store, query, texts[0]) if both else 0))
    return found


@contextmanager
def _store(folder: Path, texts: Sequence[str], language: str) -> Iterator[LocalStore]:
    with closing(LocalStore(folder, language=language)) as store:
        chunks = [EmbeddedChunk(text, {}, VECTOR) for text in texts]
        store.add_documents(chunks, ids=[f"{number:04}" for number in range(len(texts))])
        yield store


def _rank(store: LocalStore, query: str, text: str) -> int:
    found = [document.content for document in store.search_text(query, 10)]
    return found.index(text) + 1 if text in found else 0


if __name__ == "__main__":
    main()
