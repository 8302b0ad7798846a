"""Office documents, books, web pages, mails and notebooks: their text as Markdown."""

from __future__ import annotations

import re

from ragistry.utils.documents.extracted import FEW, Extracted, ExtractLimits
from ragistry.utils.documents.pdf import describe
from ragistry.utils.documents.reader_process import read_in_worker
from ragistry.utils.wording import agreeing, numbered

REPAIR = "open it in the program that made it and save it again"

_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def read_office(path: str, limits: ExtractLimits) -> Extracted:
    """The text of a document as Markdown: headings, lists, tables, code; slides and sheets have a heading each.

    Slides have pages. Raises `ExtractionError` for a file that is broken, encrypted or over a limit.
    """
    answer = read_in_worker(path, "office", limits, REPAIR)
    text, info = answer["text"], answer["info"]
    metadata = describe({**info, "Subject": ""})
    if date := _ISO_DATE.match(info["Date"]):
        metadata["date"] = date[0]
    warnings, lost = [], []
    if not text.strip():
        warnings.append("the document is empty: there is nothing to search in it")
    elif answer["missing"] > FEW * answer["words"]:
        share = answer["missing"] / answer["words"]
        lost.append(
            f"{share:.0%} of its words ({answer['missing']:,} of {answer['words']:,}) could not be taken in; "
            "save it as PDF or text to have all of it searched"
        )
    if names := answer.get("attachments"):
        it, attached = agreeing(len(names), "[it|them]"), numbered(len(names), "attachment[ is|s are]")
        lost.append(f"{attached} not read ({', '.join(names[:5])}); save {it} from the mail and ingest {it}")
    starts = tuple(answer["page_starts"])
    return Extracted(text, path, "markdown", starts, metadata, (*warnings, *lost), tuple(lost), answer["digest"])
