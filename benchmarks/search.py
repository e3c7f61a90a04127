"""Search on planted worlds: is the planted caption found, is nothing found where nothing is, and with how few images?

    python benchmarks/search.py [--problems 50] [--nulls 100] [--captions sentences phrases words] [--show]

Every problem is a classifier that fails on 5 to 25 % of the images of a class and on 50 to 90 % of those with one planted value
(a background that its rival has in training; a colour, size, count, place or light that training hardly shows). The images hold
nothing but the machine-readable strip of planted images, which is all that the planted models look at; that saves the generating.

A problem counts as solved if a proven caption names the planted value and nothing else (which is the shortest true caption), and no
proven caption names a value that does not make the classifier fail more often by itself; `alone` if no other value at all is named,
`false` if a proven caption does not really fail more often. The fixed design is the one that finds a caption with the smallest gain
of interest with a power of 90 %, for the captions that the search tried and with the same correction (`fixed_tried`: corrected for
no more than these; `fixed_oracle`: for a gain that is known beforehand).
"""

import argparse
import json
import time
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from PIL import Image
from sequential_worlds import fixed_design

from weakspot.core.arrays import generator
from weakspot.core.roles import GeneratedImage
from weakspot.generate.search.finding import CaptionSearch, n_content_words, search_failures
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.generate.search.sentences import sentences_of
from weakspot.run.settings import SearchSettings
from weakspot.testing.fakes import PlantedCaptioner, PlantedEmbedder, planted_classifier
from weakspot.testing.planted import PlantedProblem, plant
from weakspot.testing.scenes import (
    CELLS,
    FACTOR_NAMES,
    FACTORS,
    KINDS,
    N_INSTANCES,
    factors_of,
    read_marker,
    scene_from_phrase,
    write_marker,
)

BASELINE_RANGE = (0.05, 0.25)
VALUE_RANGE = (0.5, 0.9)
N_TRUE = 4000
SETTINGS = SearchSettings()
POWER = 0.9
TRUE_GAIN = 0.05
# (kind, factor, strengths, numbers of classes, problems of 50)
PLAN = (
    ("spurious", "background", (0.99, 0.985), (2,), 12),
    ("spurious", "colour", (0.99, 0.985), (2,), 6),
    ("rare", "colour", (0.0, 0.01, 0.02), (2, 3, 4), 10),
    ("rare", "background", (0.0, 0.01, 0.02), (2, 3, 4), 8),
    ("rare", "position", (0.0, 0.02), (2, 3), 5),
    ("rare", "lighting", (0.02, 0.01), (2,), 3),
    ("rare", "size", (0.02, 0.01), (2,), 3),
    ("rare", "count", (0.02, 0.01), (2,), 3),
)


@dataclass(frozen=True, kw_only=True)
class StripGenerator:
    """Gives the scenes of the planted image generator, as strips on a grey ground."""

    generator_id: str = "planted-strip-1"

    def generate(self, prompts, *, seeds):
        """Return one image a prompt."""
        return [self._generated(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _generated(self, prompt, seed):
        random = generator(seed, "planted image", prompt)
        scene = scene_from_phrase(
            prompt, generator=random, instance=int(random.integers(N_INSTANCES))
        )
        pixels = write_marker(np.full((CELLS, CELLS, 3), 128, dtype=np.uint8), scene)
        return GeneratedImage(
            image=Image.fromarray(pixels), prompt=prompt, seed=seed, generator_id=self.generator_id
        )


@dataclass(frozen=True, kw_only=True)
class PhraseCaptioner(PlantedCaptioner):
    """Says two things in a sentence, so that adjectives can be left out: "it is a small red disc"."""

    def complete(self, images, *, beginning):
        """Return four sentences an image."""
        assert beginning
        return [self._said(read_marker(image)) for image in images]

    def _said(self, scene):
        return (
            f"it is a {scene.size} {scene.colour} {scene.kinds[0]}. there is a {scene.lighting} {scene.background} background. "
            f"there is {scene.count}. it is on the {scene.position}."
        )


CAPTIONERS = {"sentences": PlantedCaptioner, "phrases": PhraseCaptioner, "words": lambda: None}


def true_rate(world, class_name, values=()):
    """Return the failure rate on many scenes of a class with some values fixed."""
    draws = np.random.default_rng(0)
    codes = np.stack(
        [draws.integers(0, len(known), N_TRUE) for known in FACTORS.values()], axis=1
    ).astype(np.uint8)
    codes[:, 0] = 1 << KINDS.index(class_name)
    for factor, value in values:
        codes[:, FACTOR_NAMES.index(factor)] = FACTORS[factor].index(value)
    said = world.head.probabilities(
        world.own.of(codes, draws.integers(0, N_INSTANCES, N_TRUE))
    ).argmax(axis=1)
    return float(np.mean(said != world.dataset.class_names.index(class_name)))


def planted_worlds(n_problems):
    """Yield worlds whose classifier fails as it should; others are passed over."""
    for kind, factor, strengths, sizes, share in PLAN:
        wanted = max(1, round(share * n_problems / 50))
        strength, size = cycle(strengths), cycle(sizes)
        for number in range(40 * wanted):
            draws = np.random.default_rng([number, *map(ord, kind + factor)])
            first, rival, *others = draws.permutation(KINDS)[: next(size)].tolist()
            value, usual = draws.permutation(FACTORS[factor])[:2].tolist()
            names = {
                "class_name": first,
                "rival": rival,
                "factor": factor,
                "value": value,
                "usual_value": usual,
            }
            problem = PlantedProblem(kind=kind, strength=next(strength), **names)
            world = plant(problem, 4000, seed=number, classes=(first, rival, *others))
            base, rate = true_rate(world, first), true_rate(world, first, [(factor, value)])
            if (
                BASELINE_RANGE[0] <= base <= BASELINE_RANGE[1]
                and VALUE_RANGE[0] <= rate <= VALUE_RANGE[1]
            ):
                yield world, base, rate
                wanted -= 1
            if not wanted:
                break


def null_worlds(n_worlds):
    for number in range(n_worlds):
        classes = tuple(np.random.default_rng(number).permutation(KINDS)[: 2 + number % 3].tolist())
        yield plant(PlantedProblem(kind="none"), 2000, seed=number, classes=classes), classes[0]


def searched(world, class_name, captions, seed):
    sampler = MemorySampler(
        generator=StripGenerator(),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
        captioner=CAPTIONERS[captions](),
        seed=seed,
    )
    return search_failures(sampler, CaptionSearch(class_name=class_name))


def named_values(caption):
    return {
        (name, value)
        for name, values in factors_of(caption).items()
        for value in values
        if name != "kind"
    }


def fixed_total(result, gain, *, most=SETTINGS.most_captions):
    """Return the images of a fixed design for the captions that were tried, corrected for `most` captions."""
    n_captions = max(sum(trial.can_be_generated for trial in result.trials), 1)
    rate = min(max(result.baseline.rate.value, 0.01), 1.0 - gain - 0.01)
    alpha = SETTINGS.alpha * n_captions / (most or n_captions)
    return fixed_design(rate, gain, n_captions=n_captions, alpha=alpha, power=POWER).total


def on_problem(world, base, rate, captions, seed):
    problem = world.problem
    result = searched(world, problem.class_name, captions, seed)
    named = [named_values(finding.trial.caption) for finding in result.findings]
    planted = {(problem.factor, problem.value)}
    right = [
        finding for finding, values in zip(result.findings, named, strict=True) if values == planted
    ]
    others = set().union(*named) - planted
    idle = [one for one in others if true_rate(world, problem.class_name, [one]) < base + TRUE_GAIN]
    lengths = [
        (
            n_content_words(sentences_of(one.whole.caption)),
            n_content_words(sentences_of(one.trial.caption)),
        )
        for one in right
    ]
    return {
        "problem": f"{problem.kind} {problem.class_name} {problem.factor} {problem.value} {problem.strength}",
        "rates": f"{base:.2f} {rate:.2f}",
        "named": any(values >= planted for values in named),
        "solved": bool(right) and not idle,
        "alone": bool(right) and not others,
        "false": any(
            true_rate(world, problem.class_name, values) < base + TRUE_GAIN for values in named
        ),
        "images": result.n_images,
        "captions": len(result.trials),
        "fixed": fixed_total(result, SETTINGS.smallest_gain),
        "fixed_tried": fixed_total(result, SETTINGS.smallest_gain, most=None),
        "fixed_oracle": fixed_total(result, rate - base),
        "before": float(np.mean([before for before, _ in lengths])) if lengths else float("nan"),
        "after": float(np.mean([after for _, after in lengths])) if lengths else float("nan"),
        "findings": [finding.trial.caption for finding in result.findings],
        "result": result,
    }


def shown(row):
    print(json.dumps({name: value for name, value in row.items() if name != "result"}))
    if not row["solved"]:
        for trial in (row["result"].baseline, *row["result"].trials):
            counts = f"{trial.failures:3}/{trial.n_images:3}"
            print(
                f"    {trial.step:9} {counts} {trial.stopped_because:12} {trial.is_proven} {trial.caption}"
            )
        for cluster in row["result"].clusters:
            print(
                f"    cluster {cluster.size} {cluster.predicted}: {cluster.caption} {cluster.note}"
            )


MEANS = ("images", "captions", "fixed", "fixed_tried", "fixed_oracle")


def summary(rows):
    shares = {
        name: float(np.mean([row[name] for row in rows]))
        for name in ("solved", "alone", "named", "false")
    }
    means = {name: float(np.mean([row[name] for row in rows])) for name in MEANS}
    lengths = {name: float(np.nanmean([row[name] for row in rows])) for name in ("before", "after")}
    ratio = {
        "of_fixed": means["images"] / means["fixed"],
        "of_fixed_median": float(np.median([r["images"] / r["fixed"] for r in rows])),
    }
    return {"problems": len(rows), **shares, **means, **ratio, **lengths}


def rounded(values):
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in values.items()
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--nulls", type=int, default=100)
    parser.add_argument("--captions", nargs="+", choices=list(CAPTIONERS), default=["sentences"])
    parser.add_argument(
        "--show",
        action="store_true",
        help="print every problem, and everything about those not solved",
    )
    settings = parser.parse_args()
    worlds = list(planted_worlds(settings.problems)) if settings.problems else []
    for captions in settings.captions:
        if worlds:
            measure_problems(worlds, captions, is_shown=settings.show)
        if settings.nulls:
            measure_nulls(settings.nulls, captions)


def measure_problems(worlds, captions, *, is_shown):
    started = time.process_time()
    rows = [on_problem(*world, captions, seed) for seed, world in enumerate(worlds)]
    for row in rows if is_shown else ():
        shown(row)
    found = summary(rows)
    print(
        json.dumps(
            {
                "captions from": captions,
                **rounded(found),
                "cpu_seconds": round(time.process_time() - started),
            }
        )
    )
    print(
        f"solved: {found['solved']:.0%}, wanted at least 90%: {'yes' if found['solved'] >= 0.9 else 'NO'}"
    )
    is_cheap = "yes" if found["of_fixed"] <= 0.2 else "NO"
    print(f"images: {found['of_fixed']:.2f} of the fixed design, wanted at most 0.20: {is_cheap}")


def measure_nulls(n_worlds, captions):
    results = [
        searched(world, name, captions, seed)
        for seed, (world, name) in enumerate(null_worlds(n_worlds))
    ]
    share = float(np.mean([bool(result.findings) for result in results]))
    images = float(np.mean([result.n_images for result in results]))
    print(
        json.dumps(
            {
                "captions from": captions,
                "nulls": len(results),
                "with_findings": share,
                "images": round(images),
            }
        )
    )
    print(
        f"nulls with findings: {share:.0%}, wanted at most {SETTINGS.alpha:.0%}: {'yes' if share <= SETTINGS.alpha else 'NO'}"
    )


if __name__ == "__main__":
    main()
