"""A table without images for tests: labels, predictions, columns and captions of training, evaluation and pool rows."""

import csv
from pathlib import Path

import numpy as np

COLOURS = ("red", "green", "blue", "grey", "white")
IN_TRAINING = (0.4, 0.05, 0.25, 0.2, 0.1)
ELSEWHERE = (0.3, 0.2, 0.2, 0.15, 0.15)
THINGS = ("bench", "tree", "car", "fence", "lamp", "box", "stone", "bag", "sign", "rope")
PLACES = ("street", "beach", "garden", "bridge", "field", "hill", "river", "yard")


def write_captioned_table(
    path: Path, *, n_rows: int = 700, unlabelled: float = 0.3, is_bad: bool = True
) -> Path:
    """Write a table in which green cats and dogs in the rain are mostly wrong, and return where it is.

    Args:
        path: of the table.
        n_rows: rows of each of the splits train, validation and pool.
        unlabelled: share of pool rows without a label.
        is_bad: whether they are; otherwise all rows are wrong equally often.
    """
    random = np.random.default_rng(5)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sample_id", "split", "label", "prediction", "colour", "caption"])
        for split in ("train", "validation", "pool"):
            for number in range(n_rows):
                label = str(random.choice(["cat", "dog"]))
                shares = IN_TRAINING if split == "train" else ELSEWHERE
                colour = str(random.choice(COLOURS, p=shares))
                is_wet = random.random() < 0.15
                caption = f"a {label} {'in the rain ' if is_wet else ''}near a {random.choice(THINGS)} on a {random.choice(PLACES)}"
                is_hard = (colour == "green") if label == "cat" else is_wet
                wrong = random.random() < (0.75 if is_hard and is_bad else 0.08)
                said = {"cat": "dog", "dog": "cat"}[label] if wrong else label
                known = label if split != "pool" or random.random() >= unlabelled else ""
                writer.writerow([f"{split}-{number}", split, known, said, colour, caption])
    return path
