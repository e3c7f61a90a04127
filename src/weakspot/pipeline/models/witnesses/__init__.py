"""Independent witnesses of words: text in the image, objects, places, measured properties; each looks at an image once."""
