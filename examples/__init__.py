"""Example programs; each can be read and run alone."""
