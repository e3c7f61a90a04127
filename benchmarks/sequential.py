"""What sequential sampling promises and what it saves, by simulation.

    python benchmarks/sequential.py                  # everything, about half an hour on two busy cores
    python benchmarks/sequential.py --share 0.1      # a tenth of the worlds

Paths: how often an interval or an e-value fails at any time at all. Kinds of evidence: images of one caption until it is proven,
for the e-value that is used, for safe tests of two-by-two tables in blocks, and for an e-value against an upper bound of the
baseline. Worlds: captions against a baseline; false discoveries, power, and images beside fixed designs in four readings:
(i) planned for the smallest gain of interest, with the power that the sequential one has on these worlds;
(ii) the smallest fixed design that has this power on these very worlds, as if gains had been known beforehand;
(iii) the same, but the sequential one knows as well that gains are large;
(iv) captions that have exactly the smallest gain, or a little more, and the fixed design of the same power for that gain.
One JSON line a figure.
"""

import argparse
from dataclasses import replace

import numpy as np
from sequential_worlds import (
    ALPHA,
    GAIN,
    KNOWN_GAIN,
    MAX_CAPTIONS,
    SETTINGS,
    FixedDesign,
    World,
    fixed_design,
    mean_of,
    show,
)

from weakspot.core.arrays import generator
from weakspot.core.statistics import fisher_ps, q_values
from weakspot.generate.search.sequential import (
    contrast_intervals,
    log_evidence,
    rate_interval,
)
from weakspot.run.settings import SearchSettings

BASELINES, SIZES = (0.05, 0.1, 0.15), (10, 20, 30)
PLANTED = ((0.5,), (0.7,), (0.9,), (0.5, 0.7, 0.9), (0.6, 0.8))


def paths(n_paths):
    """Measure how often intervals and e-values fail at any of many looks."""
    looks = np.unique(np.geomspace(1, 1000, 40).astype(int))
    for rate in (0.02, 0.1, 0.5, 0.8):
        counts = np.cumsum(generator(1, str(rate)).random((n_paths, looks[-1])) < rate, axis=1)[
            :, looks - 1
        ]
        missed = np.zeros(n_paths, dtype=bool)
        for column, n_images in zip(counts.T, looks.tolist(), strict=True):
            known = {
                k: rate_interval(k, n_images, level=1 - ALPHA) for k in np.unique(column).tolist()
            }
            missed |= np.array([not known[k][0] <= rate <= known[k][1] for k in column.tolist()])
        show(
            "rate interval misses at any time",
            rate=rate,
            value=missed.mean(),
            wanted=f"<= {ALPHA}",
            paths=n_paths,
        )
    for rate, baseline in ((0.1, 0.1), (0.7, 0.1), (0.3, 0.3)):
        _paired_paths(rate, baseline, max(20, n_paths // 4))


def _paired_paths(rate, baseline, n_paths):
    looks = [(4, 32), (8, 64), (16, 64), (32, 128), (64, 128), (128, 256), (256, 400), (400, 400)]
    random = generator(2, str(rate), str(baseline))
    counts, others = (
        np.cumsum(random.random((n_paths, 400)) < one, axis=1) for one in (rate, baseline)
    )
    missed, exceeded = np.zeros((n_paths, 2), dtype=bool), np.zeros(n_paths, dtype=bool)
    for path in range(n_paths):
        for n_images, n_baseline in looks:
            pair = (
                (int(counts[path, n_images - 1]), n_images),
                (int(others[path, n_baseline - 1]), n_baseline),
            )
            ends = contrast_intervals(*pair, level=1 - ALPHA)
            missed[path] |= [
                not low <= truth <= high
                for (low, high), truth in zip(ends, (rate - baseline, rate / baseline), strict=True)
            ]
            exceeded[path] |= log_evidence(*pair[0], *pair[1]) >= -np.log(ALPHA)
    show(
        "difference misses at any time",
        rates=(rate, baseline),
        value=missed[:, 0].mean(),
        wanted=f"<= {ALPHA}",
        paths=n_paths,
    )
    show(
        "ratio misses at any time",
        rates=(rate, baseline),
        value=missed[:, 1].mean(),
        wanted=f"<= {ALPHA}",
        paths=n_paths,
    )
    if rate <= baseline:
        show(
            "e-value exceeds 1 / alpha at any time",
            rates=(rate, baseline),
            value=exceeded.mean(),
            wanted=f"<= {ALPHA}",
        )


def kinds_of_evidence(n_paths):
    """Count images of one caption until it is proven among 40, by three kinds of evidence; the baseline has 200 images."""
    n_baseline, most, rate = 200, 400, 0.1
    for other in (0.2, 0.3, 0.5, 0.7, 0.9):
        random = generator(3, str(other))
        needed = {"product of bets": [], "blocks 1:1": [], "blocks 1:4": [], "upper bound": []}
        for _ in range(n_paths):
            predictions, baseline = random.random(most) < other, random.random(n_baseline) < rate
            counts = np.cumsum(predictions)
            looks = np.arange(4, most + 1, 4)
            ours = np.array(
                [
                    log_evidence(int(counts[n - 1]), int(n), int(baseline.sum()), n_baseline)
                    for n in looks
                ]
            )
            needed["product of bets"].append(
                _first(looks, ours >= np.log(MAX_CAPTIONS / ALPHA), most)
            )
            for size in (1, 4):
                bets = _blocks(predictions, baseline, size)
                needed[f"blocks 1:{size}"].append(
                    _first(np.arange(1, len(bets) + 1), bets >= np.log(MAX_CAPTIONS / ALPHA), most)
                )
            # A fifth of alpha for the bound, the rest for the captions.
            bound = rate_interval(int(baseline.sum()), n_baseline, level=1 - 2 * 0.2 * ALPHA)[1]
            bets = _against_bound(counts, looks, bound)
            needed["upper bound"].append(
                _first(looks, bets >= np.log(MAX_CAPTIONS / (0.8 * ALPHA)), most)
            )
        for kind, values in needed.items():
            show(
                "images until proven",
                kind=kind,
                rate=other,
                value=np.mean(np.abs(values)),
                power=np.mean(np.array(values) > 0),
            )


def _first(looks, is_enough, most):
    """Return the first look at which it is enough; minus the most images if it never is."""
    return int(looks[np.argmax(is_enough)]) if is_enough.any() else -most


def _blocks(predictions, baseline, size):
    """Return logarithmic e-values of safe tests: blocks of one image of the caption and some of the baseline, rates learned."""
    total, log_e_value, own, others = [], 0.0, [0.5, 0.5], [0.5, 0.5]
    for place in range(min(len(predictions), len(baseline) // size)):
        rate, other = own[1] / sum(own), others[1] / sum(others)
        failures = int(baseline[place * size : (place + 1) * size].sum())
        if rate > other:
            both = (rate + size * other) / (1 + size)
            log_e_value += np.log(rate / both if predictions[place] else (1 - rate) / (1 - both))
            log_e_value += failures * np.log(other / both) + (size - failures) * np.log(
                (1 - other) / (1 - both)
            )
        own[int(predictions[place])] += 1
        others[1], others[0] = others[1] + failures, others[0] + size - failures
        total.append(log_e_value)
    return np.array(total)


def _against_bound(counts, looks, bound):
    steps = 0.03 ** (1 - (np.arange(32) + 0.5) / 32)
    failures = counts[looks - 1][:, None]
    bets = failures * np.log1p(steps * (1 - bound) / bound) + (
        looks[:, None] - failures
    ) * np.log1p(-steps)
    return np.logaddexp.reduce(bets, axis=1) - np.log(32)


def null_worlds(n_worlds):
    """Measure false discoveries where all captions are like the baseline, also at an alpha at which there could be many."""
    for baseline in BASELINES:
        for alpha in (ALPHA, 0.3):
            settings = SearchSettings(alpha=alpha, smallest_gain=GAIN, most_captions=20)
            worlds = [
                World(baseline=baseline, planted=(), n_captions=20, seed=seed, settings=settings)
                for seed in range(n_worlds)
            ]
            means = mean_of(worlds)
            show(
                "null worlds",
                baseline=baseline,
                alpha=alpha,
                worlds=n_worlds,
                **means,
                wanted=f"false <= {alpha}",
            )


def planted_worlds(n_worlds):
    """Measure false discoveries, power and images where some captions are planted; fixed designs beside."""
    ratios = {"i": [], "ii": [], "iii": []}
    for baseline in BASELINES:
        for n_captions in SIZES:
            worlds = [
                World(
                    baseline=baseline,
                    planted=PLANTED[seed % len(PLANTED)],
                    n_captions=n_captions,
                    seed=seed,
                )
                for seed in range(n_worlds)
            ]
            means = mean_of(worlds)
            power = min(means["found"], 0.99)
            planned = fixed_design(
                baseline, GAIN, n_captions=n_captions, alpha=ALPHA, power=power
            ).total
            smallest = smallest_fixed(worlds, power).total
            ratios["i"].append(means["images"] / planned)
            ratios["ii"].append(means["images"] / smallest)
            known = SETTINGS.model_copy(update={"smallest_gain": KNOWN_GAIN})
            knowing = mean_of([replace(world, settings=known) for world in worlds])
            ratios["iii"].append(
                knowing["images"] / smallest_fixed(worlds, min(knowing["found"], 0.99)).total
            )
            beside = {
                "fixed_i": planned,
                "fixed_ii": smallest,
                **{f"of_{name}": values[-1] for name, values in ratios.items()},
            }
            beside |= {"found_knowing": knowing["found"], "images_knowing": knowing["images"]}
            show(
                "planted worlds",
                baseline=baseline,
                captions=n_captions,
                worlds=n_worlds,
                **means,
                **beside,
            )
    for name, values in ratios.items():
        show(
            f"images beside reading {name}",
            value=np.mean(values),
            largest=max(values),
            wanted="<= 0.2" if name == "i" else None,
        )


def smallest_fixed(worlds, power):
    """Return the smallest fixed design whose share of planted captions found (Fisher's test, Benjamini and Hochberg) is enough."""
    low, high = 1, 1024
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fixed_power(worlds, middle) >= power else (middle, high)
    return _fixed(worlds[0], high)


def _fixed(world, per_caption):
    n_captions = world.n_captions
    return FixedDesign(
        per_caption=per_caption,
        baseline=int(np.ceil(per_caption * np.sqrt(n_captions))),
        n_captions=n_captions,
    )


def _fixed_power(worlds, per_caption, n_repeats=8):
    found = []
    for world in worlds:
        design, random = (
            _fixed(world, per_caption),
            generator(world.seed, "fixed", str(per_caption)),
        )
        for _ in range(n_repeats):
            failures = random.binomial(per_caption, world.rates)
            others = np.full(world.n_captions, random.binomial(design.baseline, world.baseline))
            sizes = (
                np.full(world.n_captions, per_caption),
                np.full(world.n_captions, design.baseline),
            )
            accepted = q_values(fisher_ps(failures, sizes[0], others, sizes[1])) <= ALPHA
            found.append(accepted[: len(world.planted)].mean())
    return float(np.mean(found))


def smallest_gains(n_worlds):
    """Measure power and images where one caption has once, twice or three times the smallest gain (reading iv)."""
    limits = {
        "default": {},
        "wide": {"most_baseline": 1600, "most_per_caption": 2000, "budget": 40_000},
    }
    for name, changes in limits.items():
        for times in (1, 2, 3):
            made = World(baseline=0.1, planted=(0.1 + times * GAIN,), n_captions=20, seed=0)
            settings = made.settings.model_copy(update=changes)
            means = mean_of(
                [replace(made, seed=seed, settings=settings) for seed in range(n_worlds)]
            )
            fixed = fixed_design(
                0.1,
                times * GAIN,
                n_captions=20,
                alpha=ALPHA,
                power=float(np.clip(means["found"], 0.01, 0.99)),
            ).total
            planned = fixed_design(
                0.1,
                GAIN,
                n_captions=20,
                alpha=ALPHA,
                power=float(np.clip(means["found"], 0.01, 0.99)),
            ).total
            beside = {
                "fixed_same_gain": fixed,
                "of_same_gain": means["images"] / fixed,
                "of_i": means["images"] / planned,
            }
            show("small gains", limits=name, gain=times * GAIN, worlds=n_worlds, **means, **beside)


def main():
    """Measure everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=1.0, help="share of the paths and worlds")
    parser.add_argument("--only", choices=["paths", "evidence", "null", "planted", "small"])
    given = parser.parse_args()
    parts = {
        "paths": (paths, 2000),
        "evidence": (kinds_of_evidence, 200),
        "null": (null_worlds, 200),
    }
    parts |= {"planted": (planted_worlds, 100), "small": (smallest_gains, 60)}
    for name, (measure, n) in parts.items():
        if given.only in (None, name):
            measure(max(5, round(n * given.share)))


if __name__ == "__main__":
    main()
