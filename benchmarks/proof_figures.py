"""Draws the figures of docs/explanation/how-proof-works.md: what looking and proving on the same samples does where nothing is wrong.

    python benchmarks/proof_figures.py          writes docs/explanation/*.svg and prints the figures

Worlds of chance: a class of 400 samples of which every fifth fails, and candidate slices that are dealt by lot, 40 samples each. The best
candidate is tested on the samples that chose it, or chosen on one half and tested on the other.
"""

from pathlib import Path

import numpy as np
from scipy.stats import hypergeom

from weakspot_lab.charts import line_chart

FOLDER = Path(__file__).parent.parent / "docs" / "explanation"
N_SAMPLES, N_FAILED, N_MEMBERS = 400, 80, 40
TRIED = (1, 3, 10, 30, 100, 300, 1000)
N_WORLDS = 400
ALPHA = 0.05


def p_value(n_inside: int, n_members: int, n_failed: int, n_samples: int) -> float:
    """Return Fisher's exact one-sided p-value."""
    return float(hypergeom.sf(n_inside - 1, n_samples, n_failed, n_members))


def false_shares(n_tried: int, draws: np.random.Generator) -> tuple[float, float]:
    """Return how often the best of many chance slices looks proven: on the same samples, and on the other half."""
    same = other = 0
    for _ in range(N_WORLDS):
        failed = np.zeros(N_SAMPLES, dtype=bool)
        failed[draws.permutation(N_SAMPLES)[:N_FAILED]] = True
        first = draws.permutation(N_SAMPLES) < N_SAMPLES // 2
        members = draws.random((n_tried, N_SAMPLES)).argsort(axis=1)[:, :N_MEMBERS]
        inside = failed[members].sum(axis=1)
        same += p_value(int(inside.max()), N_MEMBERS, N_FAILED, N_SAMPLES) <= ALPHA
        is_first = first[members]
        shares = (failed[members] & is_first).sum(axis=1) / np.maximum(is_first.sum(axis=1), 1)
        best = members[shares.argmax()]
        held = best[~first[best]]
        p = p_value(
            int(failed[held].sum()), len(held), int(failed[~first].sum()), int((~first).sum())
        )
        other += p <= ALPHA
    return same / N_WORLDS, other / N_WORLDS


def main() -> None:
    draws = np.random.default_rng(0)
    found = {n_tried: false_shares(n_tried, draws) for n_tried in TRIED}
    for n_tried, (same, other) in found.items():
        print(
            f"{n_tried:5} tried: {same:.0%} false on the same samples, {other:.0%} on the other half"
        )
    lines = {
        "same samples": [(n, 100 * same) for n, (same, _) in found.items()],
        "other half": [(n, 100 * other) for n, (_, other) in found.items()],
    }
    text = line_chart(
        lines,
        title="Nothing is wrong: how often something is called proven",
        x_label="slices tried",
        y_label="worlds with a false finding, %",
        is_log=True,
    )
    (FOLDER / "looking-and-proving.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
