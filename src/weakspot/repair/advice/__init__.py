"""What to do about findings: how many images to label for what gain, which ones, and files for those who do it."""
