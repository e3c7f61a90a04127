"""How often a stated cause is right, unknown or wrong, on worlds whose cause is known.

    python benchmarks/audit/causes.py                     # every row, 200 slices each
    python benchmarks/audit/causes.py --slices 20 --only linear --first-seed 5000

Rows and their generator are in `cause_worlds.py`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cause_worlds import CLASSES, ROWS, Row, world

from weakspot.core.evidence import Cause, Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.directions import DirectionsDiscoverer
from weakspot.verify.cause import CauseFinder
from weakspot.verify.halves import split_halves
from weakspot.verify.holdout import HoldoutVerifier
from weakspot.verify.labels import LabelChecker

TOP_1 = FailureCriterion()
FIRST_SEED = 10_000
MAX_WORLDS = 4


def slices_of(row: Row, discovery: SampleSet, seed: int) -> list[FailureSlice]:
    """Return the slices of a row: a column's value, or what the method `directions` finds on the discovery half."""
    names = [CLASSES[code] for code in row.classes]
    if row.rule == "linear":
        method = DirectionsDiscoverer(n_permutations=0)
        found = method.discover(discovery, TOP_1, seed=seed).slices
        return [one for one in found if one.class_name in names]
    column = "proxy" if row.rule == "proxy" else "kind"
    return [
        FailureSlice(
            class_name=name,
            rule=ColumnRule(column=column, values=(1,)),
            method="given",
            found_on=DataUse.of(discovery),
        )
        for name in names
    ]


def causes_of(row: Row, seed: int) -> Iterator[Cause]:
    """Yield the cause of every confirmed slice of one world."""
    training, evaluation = world(row, seed)
    halves = split_halves(evaluation.dataset, evaluation.rows, TOP_1, seed=0)
    discovery = evaluation.only(halves.discovery, name="validation, discovery half")
    confirmation = evaluation.only(halves.confirmation, name="validation, confirmation half")
    slices = slices_of(row, discovery, seed)
    evidence = HoldoutVerifier().verify(
        slices, discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    given = {"training": training, "evaluation": confirmation, "criterion": TOP_1}
    explained = CauseFinder().explain(slices, evidence, **given)
    for entry in LabelChecker().check(slices, explained, **given):
        if entry.verdict is Verdict.CONFIRMED:
            yield entry.cause.cause


def count_causes(row: Row, n_slices: int, *, first_seed: int = FIRST_SEED) -> Counter[Cause]:
    """Return how often each cause is stated in a row, over at least so many slices where there are enough worlds."""
    found: Counter[Cause] = Counter()
    for seed in range(first_seed, first_seed + MAX_WORLDS * n_slices):
        found.update(causes_of(row, seed))
        if found.total() >= n_slices:
            break
    return found


def line_of(row: Row, found: Counter[Cause]) -> str:
    total = max(found.total(), 1)
    right, unknown = found[row.truth], found[Cause.UNKNOWN]
    wrong = ", ".join(
        f"{cause.value} {count}"
        for cause, count in found.most_common()
        if cause not in (row.truth, Cause.UNKNOWN)
    )
    shares = [f"{100 * n / total:.0f} %" for n in (right, unknown, total - right - unknown)]
    return f"| {row.name} | {found.total()} | {' | '.join(shares)} | {wrong or '–'} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=200, help="least number of slices a row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    given = parser.parse_args()
    print("| world | slices | right | unknown | wrong | said instead |")
    print("|---|---|---|---|---|---|")
    for row in ROWS:
        if given.only in row.name:
            found = count_causes(row, given.slices, first_seed=given.first_seed)
            print(line_of(row, found), flush=True)


if __name__ == "__main__":
    main()
