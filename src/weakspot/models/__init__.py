"""Models that look, say and draw: the only place that may import torch and its relatives, on first use."""
