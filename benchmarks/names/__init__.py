"""Names of slices that are planted in real photographs: is the first word right, wrong, marked unsure, or missing?"""
