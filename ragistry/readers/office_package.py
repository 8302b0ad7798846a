"""Open the ZIP packages of office documents: parts, relations, damaged and encrypted files, properties."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from io import BytesIO
from typing import NamedTuple
from urllib.parse import unquote

from lxml import etree

from ragistry.readers.blocks import REPAIR, UnreadableFileError

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
NO_PACKAGE = f"is damaged, or has another format than its suffix says; {REPAIR}"
ENCRYPTED = "is encrypted; remove its password in the program that made it"
EMBEDDED = ("package", "oleObject")
"""Kinds of relations to files of other programs."""
MOST_BYTES = 400_000_000
"""Size of the unpacked parts of a file; a part that would exceed it is refused."""

_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_LINE_START = re.compile(r"^(?=[>#|]|[-+*]\s|\d{1,9}[.)]\s|```|~~~|=+\s*$|-+\s*$)", re.MULTILINE)
_NUMBERED = re.compile(r"^\\(\d{1,9})(?=[.)]\s)", re.MULTILINE)
TAG = re.compile(r"<(?=[a-zA-Z/!?])")
"""The start of a tag in Markdown, where a document has only that sign."""
_PATH = re.compile(
    r"(?:description: )?(?:"
    r"(?:[a-z]:[\\/]|\\\\|file:|cid:|macintosh hd:|(?:~|\.{1,2})?[\\/](?=[^\\/\s]+[\\/]))"
    r"(?:(?:[^\\/\s]+(?: [^\\/\s]+){0,2}[\\/]|/)*(?:[^\\/\s]+(?: [^\\/\s]+){0,2})?|.*\.\w{2,5})"
    r"|(?!https?:)\S+(?: \S+){0,5}\.(?:png|jpe?g|jfif|gif|bmp|emf|wmf|svg|tiff?|webp|heic|eps)"
    r")",
    re.IGNORECASE,
)
"""The path or the name of a file, as programs write it where a person has not described a picture."""
_PROPERTIES = {
    "title": "Title",
    "creator": "Author",
    "initial-creator": "Author",
    "subject": "Subject",
    "keywords": "Keywords",
    "keyword": "Keywords",
    "created": "Created",
    "creation-date": "Created",
    "modified": "Modified",
    "date": "Modified",
}
_DATES = {"Created", "Modified"}


class Relation(NamedTuple):
    """A relation of a part. ``kind``: the last word of its type; ``target``: name of a part, or an address."""

    kind: str
    target: str
    external: bool


class Package:
    """The parts of an Office Open XML or OpenDocument file, by name without case.

    A damaged part is read as far as possible, and its name is added to ``damaged``. The name of a missing part to which
    a relation leads is added to ``missing``.
    """

    def __init__(self, data: bytes) -> None:
        if data.startswith(OLE):
            if _ENCRYPTED_PACKAGE in data:
                raise UnreadableFileError(ENCRYPTED)
            raise UnreadableFileError("has an older format than its suffix says; open it and save it in the new format")
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise UnreadableFileError(NO_PACKAGE) from error
        infos = self._zip.infolist()
        self._infos = {info.filename.replace("\\", "/").lstrip("/").casefold(): info for info in infos}
        self._read: set[str] = set()
        self._size = 0  # of the parts that were read
        self._relations: dict[str, dict[str, Relation]] = {}
        self._trees: dict[str, etree._Element | None] = {}
        self.damaged: list[str] = []
        self.missing: list[str] = []

    @property
    def names(self) -> Iterable[str]:
        """Names of all parts in lower case."""
        return self._infos.keys()

    def data(self, name: str) -> bytes:
        """Return the bytes of a part; empty if it is missing or damaged."""
        info = self._infos.get(name.casefold())
        if info is None:
            if name not in self.missing:
                self.missing.append(name)
            return b""
        if info.filename not in self._read:
            self._read.add(info.filename)
            self._size += info.file_size
        if self._size > MOST_BYTES:
            raise UnreadableFileError(f"has more than {MOST_BYTES:,} bytes when it is unpacked; split it")
        try:
            return self._zip.read(info)
        except RuntimeError as error:
            raise UnreadableFileError(ENCRYPTED) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError):
            self._damage(name)
            return b""

    def xml(self, name: str) -> etree._Element | None:
        """Return the root element of a part, which is parsed once, or None without one.

        What a click opens has its address as the attribute ``address``.
        """
        if name not in self._trees:
            root = self._trees[name] = self._parsed(name)
            for link in root.iter("{*}hlinkClick") if root is not None else ():
                relation = self.relations(name).get(attribute(link, "id"))
                link.set("address", relation.target if relation and relation.external else "")
        return self._trees[name]

    def _parsed(self, name: str) -> etree._Element | None:
        data = self.data(name)
        if not data:
            return None
        try:
            return etree.fromstring(data, _parser())
        except etree.XMLSyntaxError:
            self._damage(name)
        try:
            return etree.fromstring(data, _parser(recover=True))
        except etree.XMLSyntaxError:
            return None

    def elements(self, name: str, tags: Sequence[str]) -> Iterator[etree._Element]:
        """Yield the elements of these tags at their ends, and free them afterwards."""
        data = self.data(name)
        if not data:
            return
        events = etree.iterparse(
            BytesIO(data), tag=tags, resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
        )
        try:
            for _, element in events:
                yield element
                element.clear(keep_tail=False)
                while (before := element.getprevious()) is not None:
                    element.getparent().remove(before)
        except etree.XMLSyntaxError:
            self._damage(name)

    def relations(self, name: str) -> dict[str, Relation]:
        """Return the relations of a part by their ids; of the package for the name ``""``."""
        if name in self._relations:
            return self._relations[name]
        folder, _, file = name.rpartition("/")
        path = posixpath.join(folder, "_rels", f"{file}.rels")
        root = self.xml(path) if path.casefold() in self._infos else None
        found = self._relations[name] = {}
        for one in root if root is not None else ():
            target, external = one.get("Target") or "", one.get("TargetMode") == "External"
            if not external:
                target = posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")
            found[one.get("Id") or ""] = Relation((one.get("Type") or "").rpartition("/")[2], target, external)
        return found

    def related(self, name: str, *kinds: str) -> list[str]:
        """Return the names of the parts to which relations of these kinds lead."""
        return [one.target for one in self.relations(name).values() if one.kind in kinds and not one.external]

    def roots(self, name: str, *kinds: str) -> Iterator[tuple[str, etree._Element]]:
        """Yield the names and the root elements of related parts, except of those that cannot be read."""
        for part in self.related(name, *kinds):
            if (root := self.xml(part)) is not None:
                yield part, root

    def part(self, name: str, identity: str) -> str:
        """Return the name of the part to which an identifier in another part leads; empty for an address."""
        one = self.relations(name).get(identity)
        return "" if one is None or one.external else one.target

    @cached_property
    def main(self) -> str:
        """The name of the document's main part."""
        return next((name for name in self.related("", "officeDocument") if name.casefold() in self._infos), "")

    def open_main(self, default: str, tag: str) -> tuple[str, etree._Element]:
        """Return the name and the root element of the main part, which must have this tag."""
        name = self.main or default
        root = self.xml(name)
        if root is None or local(root) != tag:
            raise UnreadableFileError(f"is not a {tag}; {REPAIR}")
        if name in self.damaged:
            raise UnreadableFileError(f"cannot be read (its part {name} is damaged); {REPAIR}")
        return name, root

    def info(self) -> dict[str, str]:
        """Return the title, author and the like of an Office Open XML file."""
        names = self.related("", "core-properties") or ["docProps/core.xml"]
        return properties(self.xml(names[0]) if names[0].casefold() in self._infos else None)

    def warnings(self, embedded: int = 0) -> list[str]:
        """Return what is wrong with the file's parts, and how many embedded files were not read, one line each."""
        lines = [f"embedded files were not read: {embedded:,}"] if embedded else []
        if self.damaged:
            lines.append(f"damaged parts, whose text may be incomplete: {_listed(self.damaged)}; {REPAIR}")
        if self.missing:
            lines.append(f"parts that the file names and does not have: {_listed(self.missing)}")
        return lines

    def _damage(self, name: str) -> None:
        if name not in self.damaged:
            self.damaged.append(name)


def properties(root: etree._Element | None) -> dict[str, str]:
    """Return the values of a properties part under the names of `ReadDocument.info`."""
    found: dict[str, list[str]] = {}
    for element in root.iter("{*}*") if root is not None else ():
        name = _PROPERTIES.get(local(element))
        value = clean(element.text or "").strip()
        if name and value and value not in found.get(name, ()) and len(element) == 0:
            found.setdefault(name, []).append(value)
    joined = {name: values[0] if name in _DATES else ", ".join(values) for name, values in found.items()}
    return {name: joined[name] for name in dict.fromkeys(_PROPERTIES.values()) if name in joined}


def local(element: etree._Element) -> str:
    """Return the name of an element without its namespace; empty for a comment."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: etree._Element, name: str) -> str:
    """Return an attribute in any namespace, since the strict and the usual form of a format have different ones."""
    for key, value in element.attrib.items():
        if key.endswith("}" + name):
            return str(value)
    return str(element.get(name) or "")


def clean(text: str) -> str:
    """Remove control characters, and make every line end ``\\n``."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def whole_number(text: str | None, default: int, most: int = 10**9) -> int:
    """Return a text as a whole number of at most this size, or the default."""
    if not text:
        return default
    try:
        return min(int(text), most)
    except ValueError:
        return default


def picture_text(*texts: str | None) -> str:
    """Join the title and the description of a picture, without those that only name a file."""
    lines = dict.fromkeys(" ".join(clean(text or "").split()) for text in texts)
    return ": ".join(line for line in lines if line and not _PATH.fullmatch(line))


def plain_markdown(text: str) -> str:
    """Return text of a document as Markdown that shows the same text: no heading, list or tag by accident."""
    lines = "\n".join(line.strip() for line in text.split("\n"))
    return TAG.sub(r"\\<", _NUMBERED.sub(r"\1\\", _LINE_START.sub(r"\\", lines)))


def heading(text: str) -> str:
    """Return text of a document as a Markdown heading of level 2."""
    return f"## {TAG.sub(chr(92) * 2 + '<', ' '.join(text.split()))}"


def markdown_cell(text: str) -> str:
    """Return text for a cell of a Markdown table: one line, with escaped pipes."""
    return TAG.sub(r"\\<", " ".join(text.split()).replace("|", "\\|")) if text else ""


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first row is the header, which is filled up to the width of the table."""
    width = max(map(len, rows))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[:1] = [f"{lines[0]}{'  |' * (width - len(rows[0]))}", f"|{' --- |' * width}"]
    return "\n".join(lines)


def _parser(*, recover: bool = False) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, recover=recover
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}"
