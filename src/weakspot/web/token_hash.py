"""What is kept of a token."""

import hashlib


def token_hash(token: str) -> str:
    """Return what is stored of a token: nobody can come in with it.

    >>> token_hash("apple")[:8]
    '3a7bd3e2'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
