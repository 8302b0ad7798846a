"""The command ``ragistry``: one file a command, nothing heavy until a command runs."""


def main() -> None:
    """Run the command line."""
    from ragistry.cli.app import run

    run()
