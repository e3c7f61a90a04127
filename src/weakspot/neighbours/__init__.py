"""Side: files of neighbouring tools, written and read."""
