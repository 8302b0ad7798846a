"""Read books (.epub): the chapters in reading order, each with its title as its place."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from lxml import etree

from ragistry.readers.blocks import REPAIR, Place, ReadDocument, UnreadableFileError, add_reports
from ragistry.readers.encoding import decode
from ragistry.readers.html_page import read_page
from ragistry.readers.markdown import outline
from ragistry.readers.office_package import Package

PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
_INFO = {"title": "Title", "creator": "Author", "date": "Created", "subject": "Keywords"}


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read a book. Raises `UnreadableFileError`."""
    return _Book(Package(data)).read()


class _Book:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.names = {_alike(name): name for name in package.names}
        container = package.xml("META-INF/container.xml")
        found = container.find(".//{*}rootfile") if container is not None else None
        self.name = self._part("", found.get("full-path") or "") if found is not None else ""
        root = package.xml(self.name)
        if root is None:
            raise UnreadableFileError(f"is not a book, or damaged; {REPAIR}")
        self.root: etree._Element = root
        if "meta-inf/encryption.xml" in package.names:  # fonts alone may be encrypted too
            protected = package.elements("META-INF/encryption.xml", ["{*}CipherReference"])
            if any((one.get("URI") or "").lower().endswith((".xhtml", ".html", ".htm", ".xml")) for one in protected):
                raise UnreadableFileError("is encrypted; get a copy without copy protection")
        self.items = {item.get("id"): item for item in self.root.iterfind(".//{*}manifest/{*}item")}

    def read(self) -> ReadDocument:
        document = ReadDocument(info=self._info())
        titles = self._titles()
        chapter = ""
        for name in dict.fromkeys(self._chapters()):
            try:
                page = decode(self.package.data(name)).text
            except ValueError:  # not a text
                self.package.damaged.append(name)
                continue
            found = read_page(page)
            add_reports(document, found, name)
            [block] = found.blocks
            # A file without a title continues the chapter before it.
            chapter = titles.get(name.casefold()) or outline(block.text).sections[0].title or chapter
            document.blocks.append(replace(block, place=Place(chapter=chapter)))
        document.warnings += self.package.warnings()
        return document

    def _chapters(self) -> Iterator[str]:
        """Yield the names of the pages in reading order."""
        for entry in self.root.iterfind(".//{*}spine/{*}itemref"):
            item = self.items.get(entry.get("idref"))
            if item is not None and item.get("media-type") in PAGES:
                yield self._part(self.name, item.get("href") or "")

    def _part(self, base: str, address: str) -> str:
        """Return the name of the part to which an address in another part leads, however either is written."""
        path = address.partition("#")[0].replace("\\", "/")
        path = posixpath.normpath(posixpath.join("/", posixpath.dirname(base), path)).lstrip("/")
        return path if path.casefold() in self.package.names else self.names.get(_alike(path), unquote(path))

    def _titles(self) -> dict[str, str]:
        """Return the title of each page in the table of contents; of several titles the first."""
        titles: dict[str, str] = {}
        for item in self.items.values():
            name = self._part(self.name, item.get("href") or "")
            if "nav" in (item.get("properties") or "").split():
                links = self._links(name, "{*}a", "href")
            elif item.get("media-type") == "application/x-dtbncx+xml":
                links = self._links(name, "{*}navPoint", "src")
            else:
                continue
            for part, title in links:
                titles.setdefault(part.casefold(), title)
        return titles

    def _links(self, name: str, tag: str, attribute: str) -> Iterator[tuple[str, str]]:
        root = self.package.xml(name)
        for entry in root.iter(tag) if root is not None else ():
            target = entry if attribute == "href" else entry.find("{*}content")
            label = entry if attribute == "href" else entry.find("{*}navLabel")
            if target is not None and label is not None and (title := " ".join("".join(label.itertext()).split())):
                yield self._part(name, target.get(attribute) or ""), title

    def _info(self) -> dict[str, str]:
        info: dict[str, str] = {}
        for element in self.root.iterfind(".//{*}metadata/{*}*"):
            key = _INFO.get(etree.QName(element).localname)
            if key and element.text and element.text.strip():
                value = " ".join(element.text.split())
                several = key in info and key in ("Author", "Keywords")
                info[key] = f"{info[key]}, {value}" if several else info.get(key, value)
        return info


def _alike(name: str) -> str:
    """Return what names of one part have in common that differ in escapes, case or the composition of letters."""
    return unicodedata.normalize("NFC", unquote(name)).casefold()
