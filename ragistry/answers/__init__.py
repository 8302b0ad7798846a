"""Answers with citations, and quotations that are checked."""
