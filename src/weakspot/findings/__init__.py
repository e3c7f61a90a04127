"""Face: three lines of Python, from arrays or a table to findings with images and words."""
