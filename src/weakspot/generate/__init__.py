"""Generated images: making, judging, searching with them, and changing one thing at a time."""
