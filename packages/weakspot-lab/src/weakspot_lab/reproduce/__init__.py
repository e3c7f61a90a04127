"""The papers' own protocols, run again: their tables and figures with the columns paper, ours, difference, why.

One folder a paper, with `protocol.py` (a function `protocol(request)`) and `figures.json` (what the paper states).
"""
