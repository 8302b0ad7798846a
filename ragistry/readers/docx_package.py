"""Open Word documents: names of elements, and parts by what they are."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from ragistry.readers.blocks import REPAIR, UnreadableFileError
from ragistry.readers.office_package import Package, Relation

Element = Any  # lxml has no type hints

_OPEN = "http://schemas.openxmlformats.org/"
W = f"{{{_OPEN}wordprocessingml/2006/main}}"
A = f"{{{_OPEN}drawingml/2006/main}}"
C = f"{{{_OPEN}drawingml/2006/chart}}"
R = f"{{{_OPEN}officeDocument/2006/relationships}}"
WP = f"{{{_OPEN}drawingml/2006/wordprocessingDrawing}}"
DGM = f"{{{_OPEN}drawingml/2006/diagram}}"
MC = f"{{{_OPEN}markup-compatibility/2006}}"
CX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
W14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
V = "{urn:schemas-microsoft-com:vml}"
TYPES = f"{{{_OPEN}package/2006/content-types}}"
PPR, RPR, VAL, ID = W + "pPr", W + "rPr", W + "val", W + "id"
_MAIN_TYPE = re.compile(r"word.*(?:main|template).*\+xml$", re.IGNORECASE)
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")


class WordPackage(Package):
    """The parts of a Word document by what they are. Each is parsed once."""

    def __init__(self, data: bytes, suffix: str) -> None:
        super().__init__(data)
        self._names = frozenset(self.names)
        types = self.xml("[Content_Types].xml")
        self.types: dict[str, str] = {}
        for override in () if types is None else types.iter(TYPES + "Override"):
            name = (override.get("PartName") or "").lstrip("/").casefold()
            self.types[name] = override.get("ContentType") or ""
        self.document_name = self._document_name(suffix)
        root = self.xml(self.document_name)
        if self.document_name in self.damaged:
            raise UnreadableFileError(f"has broken XML in {self.document_name}; {REPAIR}")
        if root is None or root.tag != W + "document":
            raise UnreadableFileError(f"is not a {suffix} document; {REPAIR}")
        self.document: Element = root

    def _document_name(self, suffix: str) -> str:
        typed = [name for name, kind in self.types.items() if _MAIN_TYPE.search(kind)]
        for name in (self.main.casefold(), *typed, "word/document.xml"):
            if name in self._names:
                return name
        raise UnreadableFileError(f"is not a {suffix} document: it has no main part; {REPAIR}")

    def xml(self, name: str) -> Element | None:
        """Return the root element of a part, or None without one; names of the strict variant are replaced."""
        key = name.casefold()
        if key not in self._trees:
            root = super().xml(key)
            if root is not None and any("purl.oclc.org/ooxml" in uri for uri in root.nsmap.values()):
                text = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", etree.tostring(root))
                self._trees[key] = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
        return self._trees[key]

    def relations(self, name: str) -> dict[str, Relation]:
        """Return the relations of a part by their ids, with the names of parts in lower case."""
        if name not in self._relations:
            found = super().relations(name)
            self._relations[name] = {
                key: one if one.external else one._replace(target=one.target.casefold()) for key, one in found.items()
            }
        return self._relations[name]

    def parts(self, kind: str) -> list[str]:
        """Return the names of the document's parts of a kind, first those to which a relation leads."""
        names = [*self.related(self.document_name, kind), *self.typed(kind)]
        return [name for name in dict.fromkeys(names) if name in self._names]

    def typed(self, *kinds: str) -> list[str]:
        """Return the parts whose content type ends with one of the kinds, such as ``footnotes``."""
        ends = tuple(f".{kind}+xml" for kind in kinds)
        return [
            name
            for name, kind in self.types.items()
            if kind.endswith(ends) and name in self._names and "/glossary/" not in name
        ]

    def embedded(self) -> int:
        """Return the number of files in the text and its notes; those of charts hold the values of the chart."""
        texts = self.document_name, *self.typed("header", "footer", "footnotes", "endnotes", "comments")
        found = [one for name in texts for one in self.relations(name).values() if not one.external]
        return sum(one.kind in ("package", "oleObject") for one in found)

    def first(self, kind: str) -> Element | None:
        """Return the root of the first part of a kind."""
        names = self.parts(kind)
        return self.xml(names[0]) if names else None


def is_on(element: Element | None) -> bool:
    """Return whether a property is there and not switched off."""
    return element is not None and element.get(VAL, "true") not in ("0", "false", "off")


def whole_number(text: str | None, default: int) -> int:
    """Return a text as a whole number, or the default."""
    try:
        return int(text or "")
    except ValueError:
        return default
