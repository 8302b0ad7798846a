"""Ollama's own protocol: its client, and an embedder and a generator over it.

It is beside `models`, not in it: it has a client, an address and errors of its own, and builds on parts of `models`.
"""
