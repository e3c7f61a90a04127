"""Training of a last linear layer on frozen features."""

from weakspot.repair.head_training.trainer import HeadTrainer, TrainedHead

__all__ = ["HeadTrainer", "TrainedHead"]
