"""Stage 1: any source of samples to examined samples, and classifiers to predictions."""
