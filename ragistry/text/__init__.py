"""Analyse words, spellings, phrases and languages of texts."""
