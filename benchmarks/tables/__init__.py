"""Tables without images, whose truth is known: what the product says of them, and what other tools list first."""
