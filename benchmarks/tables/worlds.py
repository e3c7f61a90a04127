"""Tables of labels, predictions and yes/no columns, made by nothing but numpy, in which a broad cause holds and overlaps severe small ones."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

N_FACTORS = 5


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """What a table is like.

    Args:
        n_rows: evaluation rows.
        n_classes: of equal size; only the first has anything planted.
        n_columns: yes/no columns, all behind a few hidden numbers.
        rest_rate: chance of failure where nothing is wrong.
        is_null: whether nothing is planted.
        broad: (share of the class, chance of failure) of the broad cause.
        inside: (rows, chance of failure) of the severe slice inside of it.
        beside: (rows, chance of failure) of the severe slice that overlaps it.
    """

    n_rows: int = 20_000
    n_classes: int = 4
    n_columns: int = 40
    rest_rate: float = 0.02
    is_null: bool = False
    broad: tuple[float, float] = (0.22, 0.56)
    inside: tuple[int, float] = (125, 0.86)
    beside: tuple[int, float] = (125, 0.78)


@dataclass(frozen=True, kw_only=True, eq=False)
class PlantedTable:
    """A table and what is true of it.

    Args:
        labels: [n].
        failed: [n].
        columns: [n, a] yes or no.
        chance: [n] true chance of failure.
        planted: by name, the columns that make a planted slice of the first class.
    """

    labels: np.ndarray
    failed: np.ndarray
    columns: np.ndarray
    chance: np.ndarray
    planted: dict[str, tuple[int, ...]]

    def members(self, name: str) -> np.ndarray:
        """Return the rows of a planted slice [n]."""
        return (self.labels == 0) & self.columns[:, list(self.planted[name])].all(axis=1)

    def write(self, path: Path) -> None:
        """Write a CSV file as a user would bring it."""
        n_classes = int(self.labels.max()) + 1
        wrong = (self.labels + 1) % n_classes
        predictions = np.where(self.failed, wrong, self.labels)
        words = np.where(self.columns, "yes", "no")
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            names = [name_of(place) for place in range(words.shape[1])]
            writer.writerow(["key", "label", "prediction", "split", *names])
            for row in range(len(words)):
                label, predicted = self.labels[row], predictions[row]
                start = [f"r{row:06d}", f"class{label}", f"class{predicted}", "validation"]
                writer.writerow([*start, *words[row]])


def name_of(column: int) -> str:
    return f"tag{column:02d}"


def make_table(plan: TablePlan, seed: int) -> PlantedTable:
    """Return a table; the same plan and seed give the same one."""
    random = np.random.default_rng([seed, 17])
    labels = np.arange(plan.n_rows) % plan.n_classes
    hidden = random.normal(size=(plan.n_rows, N_FACTORS))
    loadings = random.normal(size=(N_FACTORS, plan.n_columns)) * 0.45
    levels = hidden @ loadings + random.normal(size=(plan.n_rows, plan.n_columns)) * 0.8
    shares = random.uniform(0.05, 0.5, plan.n_columns)
    places = np.minimum((shares * plan.n_rows).astype(int), plan.n_rows - 1)
    columns = levels > -np.sort(-levels, axis=0)[places, np.arange(plan.n_columns)]
    chance = np.full(plan.n_rows, plan.rest_rate)
    planted: dict[str, tuple[int, ...]] = {}
    if not plan.is_null:
        own = labels == 0
        broad, part, first, second = random.permutation(plan.n_columns)[:4].tolist()
        columns[:, broad] = levels[:, broad] > np.quantile(levels[own, broad], 1 - plan.broad[0])
        _fit(columns, levels, own & columns[:, broad], part, plan.inside[0])
        columns[:, first] = levels[:, first] > np.quantile(levels[own, first], 0.85)
        _fit(columns, levels, own & columns[:, first], second, plan.beside[0])
        planted = {"broad": (broad,), "inside": (broad, part), "beside": (first, second)}
        for name, rate in (
            ("broad", plan.broad[1]),
            ("beside", plan.beside[1]),
            ("inside", plan.inside[1]),
        ):
            chance[own & columns[:, list(planted[name])].all(axis=1)] = rate
    failed = random.random(plan.n_rows) < chance
    return PlantedTable(
        labels=labels, failed=failed, columns=columns, chance=chance, planted=planted
    )


def _fit(
    columns: np.ndarray, levels: np.ndarray, around: np.ndarray, column: int, size: int
) -> None:
    """Choose the threshold of a column so that so many of some rows have it."""
    threshold = np.sort(levels[around, column])[::-1][min(size, around.sum() - 1)]
    columns[:, column] = levels[:, column] > threshold
