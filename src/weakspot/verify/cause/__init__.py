"""Why a confirmed slice fails, as far as training data and wrong answers tell."""

from weakspot.verify.cause.finder import CauseFinder

__all__ = ["CauseFinder"]
