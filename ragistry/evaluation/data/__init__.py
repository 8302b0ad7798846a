"""Test sets: read, checked, made from one's own documents, and written."""
