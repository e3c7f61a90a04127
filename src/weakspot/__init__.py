"""weakspot finds, names, proves and repairs the systematic failures of image classifiers."""

__version__ = "0.1.0"
