"""What a lexical index is made of, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable

from tantivy import Document, Index, Schema, SchemaBuilder

from ragistry.utils.analysis import analyse

KEY, BLOCK, TERMS = "key", "block", "terms"
BLOCK_SIZE = 128
"""Keys whose rows have the same ``block``. What lies in a range of keys is so found by a few lists of rows, where to
look at the key of every row of the index takes longer than most searches."""


def schema() -> Schema:
    """Row keys, their blocks and terms with how often each comes; no text is kept, and no positions."""
    # A signed integer: an unsigned field that meets a negative number ends tantivy's thread without a word.
    fields = SchemaBuilder()
    fields.add_integer_field(KEY, indexed=True, fast=True)
    fields.add_integer_field(BLOCK, indexed=True)
    fields.add_text_field(TERMS, tokenizer_name="whitespace", index_option="freq")
    return fields.build()


def write(index: Index, rows: Iterable[tuple[int, str]], delete: Iterable[int], language: str, memory: int) -> None:
    """Delete the keys, add the ``(key, text)``, commit, and wait until what the commit set off is done.

    ``memory``: bytes of terms that are gathered before a segment is written.
    """
    # Else a thread of tantivy's follows the commit, and may hold a lock when the process forks or the folder goes.
    index.config_reader("manual")
    writer = index.writer(memory, 1)
    try:
        # What a killed writer left would be in the way: the same work gives its files the same names.
        writer.garbage_collect_files()
        for key in delete:
            writer.delete_documents_by_term(KEY, key)
        for key, text in rows:
            document = Document()
            document.add_integer(KEY, key)
            document.add_integer(BLOCK, key // BLOCK_SIZE)
            document.add_text(TERMS, " ".join(analyse(text, language)))
            writer.add_document(document)
        writer.commit()
    finally:
        writer.wait_merging_threads()  # and lets go of tantivy's lock
