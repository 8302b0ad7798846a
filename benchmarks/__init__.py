"""Slow measurements: each script runs both sides in one run and prints a table with ratios."""
