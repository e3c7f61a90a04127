"""Generated images: what can be asked for, and what was found on them."""
