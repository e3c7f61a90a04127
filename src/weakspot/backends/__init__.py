"""Side: models. The only place that may import torch and its relatives, on first use."""
