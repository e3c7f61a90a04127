"""Error rates and power of the proof, by simulation.

    python benchmarks/proof.py                  # everything, about 15 minutes on two cores
    python benchmarks/proof.py --share 0.1      # a tenth of the worlds

Null worlds: nothing depends on any hypothesis, so every finding is false. Mixed worlds: five planted slices among the hypotheses.
Power: one slice with 50 confirmation samples and a gap of 20 points among 1,000 hypotheses. Whole worlds: planted images without
a problem through real methods. Labels and causes: planted problems, and what is said of them. One JSON line a figure, then the same
to read; bounds are those that a figure must keep within two standard errors.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from proof_counts import (
    ALPHA,
    MOST,
    SCHEMES,
    SCREEN_P,
    drawn_world,
    fast_errors,
    fast_power,
    figure,
)

from weakspot.core.arrays import generator
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import WeakspotError
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.registry import part_class
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import wilson_interval
from weakspot.testing.planted import label_noise, nothing, phrase_embeddings, plant, rare, spurious
from weakspot.verify.cause import CauseFinder
from weakspot.verify.halves import split_halves
from weakspot.verify.holdout import HoldoutVerifier
from weakspot.verify.labels import LabelChecker
from weakspot.verify.screening import screened

TOP_1 = FailureCriterion()
PLANTED = "planted"


# ---------------------------------------------------- membership by attributes, counted without objects


# ---------------------------------------------------- the same through screening and verifier


def attribute_samples(codes, failed):
    """Return samples of one class whose metadata columns are attributes."""
    columns = {f"column{number}": codes[:, number] for number in range(codes.shape[1])}
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        labels=np.zeros(len(failed), dtype=np.int64),
        predictions=failed.astype(np.int64),
        metadata=columns,
    )
    return SampleSet(dataset=dataset, rows=np.arange(len(failed)))


def attribute_slices(samples, n_columns, n_values):
    """Return one slice for every value of every column."""
    use = DataUse.of(samples)
    return [
        FailureSlice(
            class_name="a",
            rule=ColumnRule(column=f"column{column}", values=(value,)),
            method="attributes",
            found_on=use,
        )
        for column in range(n_columns)
        for value in range(n_values)
    ]


def confirmed_slices(samples, propose, verifier, *, scheme, seed):
    """Return the confirmed slices of one run: halves, proposals, screen, test."""
    halves = split_halves(samples.dataset, samples.rows, TOP_1, seed=seed)
    first, second = (
        samples.only(halves.discovery, name="one half"),
        samples.only(halves.confirmation, name="other half"),
    )
    turns = [(first, second)] if scheme == "halves" else [(first, second), (second, first)]
    part = replace(verifier, alpha=verifier.alpha / len(turns))
    found = []
    for discovery, confirmation in turns:
        kept = screened(propose(discovery), discovery, TOP_1, largest_p=SCREEN_P, most=MOST).kept
        evidence = part.verify(
            kept, discovery=discovery, confirmation=confirmation, criterion=TOP_1
        )
        found += [
            one
            for one, entry in zip(kept, evidence, strict=True)
            if entry.verdict is Verdict.CONFIRMED
        ]
    return found


def verifier_errors(n_worlds, *, n_columns=40, n_values=5):
    """Yield error rates in null worlds through the parts that runs use."""
    for correction in ("fdr", "fwer"):
        for scheme in SCHEMES:
            rates = []
            for number in range(n_worlds):
                codes, failed = drawn_world(
                    generator(number, "verifier"),
                    n_rows=400,
                    n_columns=n_columns,
                    n_values=n_values,
                )
                samples = attribute_samples(codes, failed)
                found = confirmed_slices(
                    samples,
                    lambda discovery: attribute_slices(discovery, n_columns, n_values),
                    HoldoutVerifier(alpha=ALPHA, correction=correction),
                    scheme=scheme,
                    seed=number,
                )
                rates.append(bool(found))
            yield figure(
                f"null worlds, screen and verifier, 200 hypotheses, {correction}, {scheme}: any false finding",
                rates,
                bound=ALPHA,
            )


def power(
    n_worlds, *, inside, outside, n_class, scheme="halves", n_columns=100, n_values=10, bound=None
):
    """Return how often a slice with 50 confirmation samples is confirmed among 1,000 hypotheses tried on the discovery half."""
    hits = []
    for number in range(n_worlds):
        random = generator(number, "power", str(n_class))
        codes = random.integers(0, n_values, (2 * n_class, n_columns))
        codes[:, 0] = np.where(
            np.arange(2 * n_class) < 100, 0, random.integers(1, n_values, 2 * n_class)
        )
        failed = random.random(2 * n_class) < np.where(codes[:, 0] == 0, inside, outside)
        found = confirmed_slices(
            attribute_samples(codes, failed),
            lambda discovery: attribute_slices(discovery, n_columns, n_values),
            HoldoutVerifier(alpha=ALPHA),
            scheme=scheme,
            seed=number,
        )
        hits.append(any(one.rule.column == "column0" and one.rule.values == (0,) for one in found))
    name = f"power, {outside:.0%} outside and {inside:.0%} inside, 50 of {n_class} samples of the class, {scheme}"
    return figure(name, hits, bound=bound, is_lower_bound=True)


# ---------------------------------------------------- planted worlds through methods


def proposed(methods, samples, seed):
    """Return what methods find, those that cannot work here aside."""
    found = []
    for name in methods:
        options = {"costs": (1e-2, 1.0), "min_strength": 0.0} if name == "directions" else {}
        try:
            part = part_class("discoverers", name)(**options)
            found += part.discover(
                samples, TOP_1, seed=seed, assistants=Assistants(embed_texts=phrase_embeddings)
            ).slices
        except (ImportError, WeakspotError) as error:
            print(f"  {name} left out: {error}")
    return found


def whole_null_worlds(n_worlds, methods):
    """Yield error rates in planted worlds without a problem."""
    validations = [
        (seed, plant(nothing(), 1_600, seed=seed).samples(Split.VALIDATION))
        for seed in range(n_worlds)
    ]
    for correction in ("fdr", "fwer"):
        for scheme in SCHEMES:
            rates = [
                bool(
                    confirmed_slices(
                        samples,
                        lambda half, seed=seed: proposed(methods, half, seed),
                        HoldoutVerifier(alpha=ALPHA, correction=correction),
                        scheme=scheme,
                        seed=seed,
                    )
                )
                for seed, samples in validations
            ]
            title = f"planted null worlds, {' '.join(methods)}, {correction}, {scheme}: any false finding"
            yield figure(title, rates, bound=ALPHA)


def judged_slices(problem, n_worlds, n_samples=3_000) -> Iterator[tuple[str, bool]]:
    """Yield (cause, whether labels are flagged) of every confirmed slice of planted classes, true ones and those of directions."""
    for seed in range(n_worlds):
        world = plant(problem, n_samples, seed=seed)
        validation = world.samples(Split.VALIDATION)
        training = world.samples(Split.TRAIN, spaces=validation.spaces)
        halves = split_halves(validation.dataset, validation.rows, TOP_1, seed=seed)
        discovery, confirmation = (
            validation.only(halves.discovery, name="one"),
            validation.only(halves.confirmation, name="other"),
        )
        slices = [
            FailureSlice(
                class_name=true.class_name,
                rule=ColumnRule(column=true.factor, values=(true.value,)),
                method=PLANTED,
                found_on=DataUse.of(discovery),
            )
            for true in world.slices
            if true.factor is not None
        ] or proposed(["directions"], discovery, seed)
        evidence = HoldoutVerifier(alpha=ALPHA).verify(
            slices, discovery=discovery, confirmation=confirmation, criterion=TOP_1
        )
        given = {"training": training, "evaluation": confirmation, "criterion": TOP_1}
        evidence = LabelChecker().check(
            slices, CauseFinder().explain(slices, evidence, **given), **given
        )
        yield from (
            (entry.cause.cause, entry.labels.is_flagged)
            for entry in evidence
            if entry.verdict is Verdict.CONFIRMED
        )


def labels_and_causes(n_worlds):
    """Yield how often labels are flagged and causes are right."""
    worlds = (
        ("label noise 0.1", label_noise(0.1), "wrong labels"),
        ("rare 0.02", rare(0.02), "rare in training"),
        ("spurious 0.95", spurious(0.95), "spurious cue"),
    )
    for name, problem, cause in worlds:
        judged = list(judged_slices(problem, n_worlds))
        flagged = [flag for _, flag in judged]
        low, high = wilson_interval(sum(flagged), len(flagged))
        yield figure(
            f"{name}: confirmed slices with flagged labels (interval {low:.2f} to {high:.2f})",
            flagged,
        )
        yield figure(
            f"{name}: confirmed slices whose cause is {cause!r}",
            [found == cause for found, _ in judged],
        )


def main():
    """Run all simulations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of the worlds that are simulated"
    )
    parser.add_argument(
        "--methods", nargs="+", default=["directions"], help="discoverers for planted null worlds"
    )
    options = parser.parse_args()

    def worlds(number):
        return max(10, round(options.share * number))

    for group in (
        fast_errors(worlds(1_000), n_planted=0),
        fast_errors(worlds(500), n_planted=5),
        verifier_errors(worlds(500)),
        whole_null_worlds(worlds(100), options.methods),
        labels_and_causes(worlds(40)),
        fast_power(worlds(200), n_fitted=0),
        fast_power(worlds(200), n_fitted=20),
    ):
        for one in group:
            one.show()
    power(worlds(200), inside=0.3, outside=0.1, n_class=500, bound=0.8).show()
    power(worlds(200), inside=0.3, outside=0.1, n_class=500, scheme="cross-fit").show()
    power(worlds(200), inside=0.5, outside=0.3, n_class=500).show()
    power(worlds(200), inside=0.3, outside=0.1, n_class=200).show()


if __name__ == "__main__":
    main()
