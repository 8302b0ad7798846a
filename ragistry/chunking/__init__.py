"""Split texts into chunks, each with its place."""
