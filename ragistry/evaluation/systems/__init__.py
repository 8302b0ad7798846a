"""The systems of a comparison: named techniques over an index of the test set, with models that can be recorded."""
