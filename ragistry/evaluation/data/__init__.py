"""Test sets: read, check, make from documents, and write them."""
