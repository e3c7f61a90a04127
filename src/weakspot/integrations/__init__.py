"""Side: files of other tools, written and read."""
