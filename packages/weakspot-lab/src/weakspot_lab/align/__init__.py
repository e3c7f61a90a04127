"""Learns the text side of a frozen image encoder."""
