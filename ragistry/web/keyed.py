"""The same rows for the same things: what is shown again keeps its elements."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nicegui import ui

Item = TypeVar("Item")
Built = tuple[ui.element, Callable[[Item], object] | None]
"""The element of an item, and what writes in it all that may change of the item, if anything may."""


@dataclass(slots=True)
class _Child(Generic[Item]):
    element: ui.element
    fill: Callable[[Item], object] | None
    shown: Item | None = None


class Keyed(Generic[Item]):
    """The children of ``parent``, one an item, told apart by ``key``.

    An item whose key is there keeps its element, and only what is another in it is written: a click that is on its
    way finds its button, the keyboard's focus stays, what is open stays open. ``build`` makes the element of an item
    that is new, and gives what fills it, then and whenever the item is another.
    """

    def __init__(
        self,
        parent: ui.element,
        key: Callable[[Item], Hashable],
        build: Callable[[Item], Built[Item]],
    ) -> None:
        self._parent = parent
        self._key = key
        self._build = build
        self._children: dict[Hashable, _Child[Item]] = {}

    def show(self, items: Iterable[Item]) -> None:
        """Show these, in this order."""
        wanted = {self._key(item): item for item in items}
        for gone in self._children.keys() - wanted.keys():
            self._children.pop(gone).element.delete()
        for place, (key, item) in enumerate(wanted.items()):
            child = self._children.get(key) or self._made(key, item)
            if self._parent.default_slot.children[place] is not child.element:
                child.element.move(target_index=place)
            if child.fill is not None and child.shown != item:
                child.fill(item)
                child.shown = item

    def _made(self, key: Hashable, item: Item) -> _Child[Item]:
        with self._parent:
            self._children[key] = _Child(*self._build(item))
        return self._children[key]
