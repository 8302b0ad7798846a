"""The same chunks and vectors through Ragistry and its peers, each in an environment of its own."""
