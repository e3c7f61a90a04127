"""Projects without images for tests: a table of labels and predictions, in which green apples are taken for pears."""

import csv
from collections.abc import Sequence
from pathlib import Path

SETTINGS = """\
seed = {seed}
[data]
source = "manifest.csv"
[attributes]
use_vocabulary = false
use_properties = false
columns = ["kind"]
[discover]
methods = ["attributes"]
"""


def write_fruit_table(
    folder: Path,
    *,
    green_right_every: int = 3,
    first: int = 0,
    n_samples: int = 400,
    labels: Sequence[str] = ("apple", "pear"),
    seed: int = 0,
) -> Path:
    """Write settings and table of a project, or write them again, and return the folder.

    Args:
        folder: made if need be.
        green_right_every: one of so many green apples is right, so that 1 means a model without a fault.
        first: number of the first sample; samples of different numbers are different samples.
        n_samples: how many.
        labels: the class that has green ones, and the other.
        seed: of the project.
    """
    apple, pear = labels
    folder.mkdir(exist_ok=True)
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["key", "label", "split", "kind", "prediction"])
        for number in range(first, first + n_samples):
            label = (apple, pear)[number % 2]
            kind = "green" if number % 4 == 0 else "red" if label == apple else "yellow"
            is_right = kind != "green" or (number // 4) % green_right_every == 0
            split = "validation" if number % 20 < 14 else "test"
            writer.writerow([f"fruit-{number}", label, split, kind, label if is_right else pear])
    (folder / "weakspot.toml").write_text(SETTINGS.format(seed=seed))
    return folder
