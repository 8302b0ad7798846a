"""``python -m ragistry`` is the command ``ragistry``."""

from ragistry.cli import main

main()
