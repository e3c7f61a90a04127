"""Methods of discovery on problems whose truth is known, on one table."""
