"""Class view: samples of a class, phrases about it, and what becomes of them."""
