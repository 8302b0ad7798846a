"""Programs over the library, each to be read and run alone."""
