"""The command ``ragistry``: one file per command, imported when the command runs."""


def main() -> None:
    """Run the command line."""
    import gc

    gc.set_threshold(20_000, 20, 20)  # most objects of a start live to its end; searching for garbage costs 5 %
    from ragistry.cli.app import run

    run()
