"""What is compared: techniques under their names, over an index of the test set, with models that can be recorded."""
