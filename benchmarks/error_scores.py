"""Exact Error Scores of 1,000 phrases on 10,000 samples, beside the matrix product alone and beside a loop over thresholds.

The loop is Clarify's public way: 1,000 thresholds between the smallest and the largest similarity of every phrase, here already
vectorised over samples. It misses the best threshold by a little; the exact score is never below it.

    python benchmarks/error_scores.py [--phrases 1000] [--samples 10000] [--loop-phrases 20]
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from weakspot.core.arrays import unit_rows
from weakspot.discover.error_score import error_score_null, error_scores, phrase_scores

DIMENSION = 512
N_THRESHOLDS = 1000
MAX_OF_PRODUCT = 2.5
MIN_OF_LOOP = 10.0


def best_time(function: Callable[[], object], n_repeats: int) -> float:
    times = []
    for _ in range(n_repeats):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)


def loop_scores(similarities: np.ndarray, failed: np.ndarray) -> np.ndarray:
    found = np.zeros(len(similarities))
    for place, row in enumerate(similarities):
        wrong, right = row[failed], row[~failed]
        for threshold in np.linspace(row.min(), row.max(), N_THRESHOLDS):
            found[place] = max(
                found[place], np.mean(wrong >= threshold) + np.mean(right < threshold) - 1.0
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--phrases", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument(
        "--loop-phrases",
        type=int,
        default=20,
        help="the loop is timed on so many phrases and scaled up",
    )
    parser.add_argument("--repeats", type=int, default=9)
    chosen = parser.parse_args()
    draws = np.random.default_rng(0)
    embeddings = unit_rows(draws.standard_normal((chosen.samples, DIMENSION), dtype=np.float32))
    phrases = unit_rows(draws.standard_normal((chosen.phrases, DIMENSION), dtype=np.float32))
    failed = draws.random(chosen.samples) < 0.2
    similarities = phrases @ embeddings.T
    found = phrase_scores(phrases, embeddings, failed)
    n_looped = min(chosen.loop_phrases, chosen.phrases)
    looped = loop_scores(similarities[:n_looped], failed)
    exact = error_scores(similarities, failed).score
    assert np.allclose(found.score, exact, atol=2e-3), "both ways of scoring must agree"
    assert np.all(exact[:n_looped] >= looped - 1e-12), "an exact score is never below a threshold's"
    assert np.all(exact[:n_looped] - looped < 0.02), "the loop finds nearly the same"
    product, both = np.inf, np.inf
    for _ in range(chosen.repeats):
        product = min(product, best_time(lambda: phrases @ embeddings.T, 1))
        both = min(both, best_time(lambda: phrase_scores(phrases, embeddings, failed), 1))
    alone = best_time(lambda: error_scores(similarities, failed), chosen.repeats)
    loop = (
        best_time(lambda: loop_scores(similarities[:n_looped], failed), 1)
        * chosen.phrases
        / n_looped
    )
    null = best_time(
        lambda: error_score_null(similarities[:100], failed, n_permutations=1000, generator=draws),
        1,
    )
    figures = {
        "product_seconds": product,
        "product_and_scores_seconds": both,
        "scores_seconds": alone,
        "loop_seconds": loop,
        "null_seconds_100_phrases_1000_shuffles": null,
        "of_product": both / product,
        "of_loop": loop / alone,
    }
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
    print(
        f"product and exact scores: {figures['of_product']:.2f} times the product alone (wanted: at most {MAX_OF_PRODUCT})"
    )
    print(
        f"exact scores: {figures['of_loop']:.0f} times faster than the loop (wanted: at least {MIN_OF_LOOP:.0f})"
    )


if __name__ == "__main__":
    main()
