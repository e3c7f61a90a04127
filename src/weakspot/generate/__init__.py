"""Composing pictures, decoding vectors, and the gate that every generated picture passes."""
