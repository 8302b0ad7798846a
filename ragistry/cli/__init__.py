"""The command ``ragistry``: one file per command, imported when the command runs."""


def main() -> None:
    """Run the command line."""
    import atexit
    import gc

    # Most objects of a short command live to its end. Searching them for garbage takes a quarter of its time.
    gc.set_threshold(400_000, 5, 5)
    atexit.register(gc.freeze)
    from ragistry.cli.app import run

    run()
