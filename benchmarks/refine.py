"""Refinement on planted background and colour problems, beside its baselines, and one set of images for five models.

    python benchmarks/refine.py

Every kind of problem is planted in several worlds; figures are means over worlds with 95 % intervals (t). The generator has either
no habits, so that it generates anything where a prompt says nothing, or those of the training samples: a disc looks as
discs usually do, as a generator that learnt from photographs does. Defaults were chosen on worlds of seed 1000, never on these.
"""

import argparse
import json
import math
import time

import numpy as np
from planted_refine.planted_worlds import (
    ModelFeatures,
    PlantedImages,
    family_features,
    planted_member,
    refine_world,
)
from scipy.stats import t as student

from weakspot.project.collective import Family
from weakspot.project.refine.refinement import HELD_OUT, TEST, refine_family, refine_model
from weakspot.project.refine.training import RANDOM, REFINE, RefineRequest, Subject
from weakspot.testing.scenes import FACTORS

PROBLEMS = (
    ("spurious", "background"),
    ("spurious", "colour"),
    ("rare", "background"),
    ("rare", "colour"),
)
HABITS = ("usual", "open")
COLUMNS = ("clean", "failure", "seed", "held_out", "test_before", "test_after")
REQUEST = RefineRequest(
    predefined=(("background", FACTORS["background"]), ("colour", FACTORS["colour"]))
)
SHARES = (
    ("the same failures", "shared"),
    ("by images of mere classes", "shared_random"),
    ("on test", "shared_test"),
)
WANTED_RATIO, MAX_LOST, WANTED_SHARED = 2.0, 0.01, 0.75


def interval(values):
    """Return mean and half the width of its 95 % interval."""
    known = np.array([value for value in values if not math.isnan(value)])
    if len(known) < 2:
        return float(known.mean()) if len(known) else math.nan, math.nan
    return float(known.mean()), float(
        student.ppf(0.975, len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known))
    )


def individual(kind, factor, habits, n_worlds, seed):
    """Return the refinements of all worlds of one kind."""
    found = []
    for number in range(n_worlds):
        world = refine_world(kind, factor, number, seed=seed)
        member = planted_member(world)
        models = {member.name: ModelFeatures(problem=world.problem)}
        images = PlantedImages(world=world, models=models, habits=habits, seed=number)
        found.append(refine_model(Subject.of(member), images, REQUEST)[0])
    return found


def ratio(refinements):
    """Return held-out failures resolved as a multiple of what images of the mere classes resolve, over all worlds."""
    refined = sum(one.arm(REFINE).held_out.count for one in refinements)
    random = sum(one.arm(RANDOM).held_out.count for one in refinements)
    return refined / random if random else math.inf


def ratio_interval(refinements, n_draws=2000):
    """Return its 95 % interval, by generating worlds anew."""
    counts = np.array(
        [[one.arm(name).held_out.count for name in (REFINE, RANDOM)] for one in refinements]
    )
    generated = np.random.default_rng(0).integers(len(counts), size=(n_draws, len(counts)))
    sums = counts[generated].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / np.maximum(sums[:, 1], 1), [0.025, 0.975])
    return float(low), float(high)


def individual_lines(title, refinements):
    """Yield one table, and return whether the wanted figures are reached."""
    arms = [arm.arm for arm in refinements[0].arms]
    yield f"\n{title} ({len(refinements)} worlds)"
    yield f"  {'arm':<11}" + "".join(f"{name:>15}" for name in COLUMNS)
    for name in arms:
        cells = []
        for column in COLUMNS:
            shares = [
                getattr(arm, column).value
                for one in refinements
                if (arm := one.arm(name)) is not None
            ]
            mean, half = interval(shares)
            cells.append(f"{100 * mean:7.1f} ±{100 * half:4.1f} ")
        yield f"  {name:<11}" + "".join(cell.rjust(15) for cell in cells)
    low, high = ratio_interval(refinements)
    lost, half = interval([1 - one.arm(REFINE).clean.value for one in refinements])
    shares = [one.arm(REFINE).share for one in refinements]
    many = f"{ratio(refinements):.1f}x (95 % interval {low:.1f} to {high:.1f})"
    yield f"  refine / random, held-out: {many}; wanted {WANTED_RATIO:g}x"
    points = f"{100 * lost:.2f} ±{100 * half:.2f} points; wanted at most {100 * MAX_LOST:g}"
    yield f"  clean lost: {points}; {min(shares):.0%} to {max(shares):.0%} of the way"


def collective(kind, factor, n_worlds, n_models, seed):
    """Return collective refinements of both types for families of models."""
    found = {1: [], 2: []}
    for number in range(n_worlds):
        world = refine_world(kind, factor, number, seed=seed)
        features = {f"model {one.number}": one for one in family_features(world.problem, n_models)}
        family = Family.of(
            [planted_member(world, own, name=name) for name, own in features.items()]
        )
        images = PlantedImages(world=world, models=features, habits="usual", seed=number)
        for type_, source in ((1, None), (2, "model 1")):
            found[type_].append(refine_family(family, images, REQUEST, source=source)[0])
    return found


def collective_lines(title, families):
    """Yield what one set resolves of what own sets resolve."""
    yield f"\n{title} ({len(families)} worlds, {len(families[0].models)} models each)"
    for name, share in SHARES:
        count = sum(getattr(one, share).count for one in families)
        total = sum(getattr(one, share).total for one in families)
        mean, half = interval([getattr(one, share).value for one in families])
        over_worlds = f"mean over worlds {100 * mean:.0f} ±{100 * half:.0f}"
        yield f"  {name:<28} {count}/{total} = {100 * count / max(total, 1):.0f} %   ({over_worlds})"
    mean, half = interval(
        [one.relative if one.relative is not None else math.nan for one in families]
    )
    yield f"  {'as many failures':<28} {100 * mean:.0f} ±{100 * half:.0f} %; wanted {100 * WANTED_SHARED:.0f} %"
    clean = [model.figures[TEST].clean_collective.value for one in families for model in one.models]
    before = [
        model.figures[HELD_OUT].resolved_individual.value
        for one in families
        for model in one.models
    ]
    after = [
        model.figures[HELD_OUT].resolved_collective.value
        for one in families
        for model in one.models
    ]
    overlaps = [
        value
        for one in families
        for place, line in enumerate(one.overlaps)
        for value in line[:place]
    ]
    yield (
        f"  held-out resolved: own {100 * np.mean(before):.1f} %, collective {100 * np.mean(after):.1f} %; "
        f"clean {100 * np.mean(clean):.1f} %; shared failures before {np.mean(overlaps):.2f}"
    )


def summary(refinements):
    low, high = ratio_interval(refinements)
    clean = [one.arm(REFINE).clean.value for one in refinements]
    return {
        "ratio": ratio(refinements),
        "low": low,
        "high": high,
        "clean": float(np.mean(clean)),
        "n_worlds": len(refinements),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument(
        "--families", type=int, default=10, help="worlds of every kind with several models"
    )
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    begun, figures = time.perf_counter(), {}
    for habits in HABITS:
        for kind, factor in PROBLEMS:
            found = individual(kind, factor, habits, settings.worlds, settings.seed)
            title = f"{kind} {factor}, generator with {'the habits of the training samples' if habits == 'usual' else 'no habits'}"
            print("\n".join(individual_lines(title, found)), flush=True)
            figures[f"{kind} {factor} {habits}"] = summary(found)
    for kind, factor in PROBLEMS if settings.families else ():
        for type_, families in collective(
            kind, factor, settings.families, settings.models, settings.seed
        ).items():
            print(
                "\n".join(collective_lines(f"collective type {type_}, {kind} {factor}", families)),
                flush=True,
            )
            relative = [one.relative or math.nan for one in families]
            figures[f"collective {type_} {kind} {factor}"] = {"relative": interval(relative)[0]}
    print(f"\n{time.perf_counter() - begun:.0f} s")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
