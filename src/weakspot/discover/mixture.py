"""Failures as components of a mixture over embeddings, labels and predictions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Bounds, Count, NonNegative, Positive
from weakspot.core.dataset import Dataset, Task, several_to_a_group
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import (
    ClassProblem,
    FailureCriterion,
    Side,
    class_problems,
    predicted_classes,
    predicted_labels,
)
from weakspot.core.group_tests import deal_folds
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import MixtureRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, obstacle, separating_cut
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association
from weakspot.discover.mixture_fit import (
    FitSettings,
    Material,
    Mixture,
    Reduction,
    bayesian_criterion,
    confusion_parts,
    fit_mixture,
    fit_reduction,
    held_out_odds,
    k_means_parts,
    with_embedding,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Samples of one mixture, ordered by label and then by sample id.

    Args:
        problems: the class problems that the samples belong to.
        columns: prediction column of every problem's label.
        rows: rows of the data set [n].
        labels: place of every sample's problem [n], ascending.
        predictions: predicted probabilities [n, q]; one and zeros where only the predicted label is known.
        predicted: column of the predicted label [n].
        n_without: samples of every problem that have no embedding.
    """

    problems: tuple[ClassProblem, ...]
    columns: tuple[int, ...]
    rows: IntArray
    labels: IntArray
    predictions: FloatArray
    predicted: IntArray
    n_without: tuple[int, ...]

    @property
    def title(self) -> str:
        return "\n".join(problem.title for problem in self.problems)

    def known(self, place: int) -> tuple[IntArray, ClassProblem]:
        """Return where the samples of a problem are in the group, and the problem with these samples in this order."""
        problem = self.problems[place]
        places = np.flatnonzero(self.labels == place)
        order = np.argsort(problem.rows)
        found = order[np.searchsorted(problem.rows, self.rows[places], sorter=order)]
        return places, problem.only(found)

    def only(self, places: IntArray) -> "Group":
        """Return the group with some of its samples, in ascending order of place."""
        return replace(
            self,
            rows=self.rows[places],
            labels=self.labels[places],
            predictions=self.predictions[places],
            predicted=self.predicted[places],
        )


def groups_of(
    samples: SampleSet, problems: Sequence[ClassProblem], space: str, *, per_class: bool
) -> Iterator[Group]:
    """Yield one group for every problem (`per_class`), for all of them (single-label) or for every label (multi-label)."""
    bundles: list[tuple[ClassProblem, ...]]
    if per_class:
        bundles = [(problem,) for problem in problems]
    elif samples.dataset.task is Task.SINGLE_LABEL:
        bundles = [tuple(problems)] if problems else []
    else:
        names = dict.fromkeys(problem.class_name for problem in problems)
        bundles = [
            tuple(problem for problem in problems if problem.class_name == name) for name in names
        ]
    for bundle in bundles:
        yield _group(samples, bundle, space)


def _group(samples: SampleSet, problems: tuple[ClassProblem, ...], space: str) -> Group:
    parts = [with_embedding(samples, space, problem.rows) for problem in problems]
    rows = np.concatenate(parts)
    predictions, predicted = _said(samples.dataset, rows, problems[0].class_name)
    return Group(
        problems=problems,
        columns=tuple(_column(samples.dataset, problem) for problem in problems),
        rows=rows,
        labels=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        predictions=predictions,
        predicted=predicted,
        n_without=tuple(
            len(problem.rows) - len(part) for problem, part in zip(problems, parts, strict=True)
        ),
    )


def _column(dataset: Dataset, problem: ClassProblem) -> int:
    return (
        dataset.class_code(problem.class_name)
        if problem.side is None
        else int(problem.side is Side.ABSENT)
    )


def _said(dataset: Dataset, rows: IntArray, class_name: str) -> tuple[FloatArray, IntArray]:
    """Return predicted probabilities [n, q] and the column of the predicted label [n]; multi-label: has it, lacks it."""
    if dataset.task is Task.SINGLE_LABEL:
        predicted = predicted_classes(dataset, rows)
        probabilities = (
            None
            if dataset.probabilities is None
            else np.asarray(dataset.probabilities[rows], dtype=np.float32)
        )
        return _one_hot(
            predicted, dataset.n_classes
        ) if probabilities is None else probabilities, predicted
    code = dataset.class_code(class_name)
    predicted = (~predicted_labels(dataset, rows)[:, code]).astype(np.int64)
    if dataset.probabilities is None:
        return _one_hot(predicted, 2), predicted
    positive = np.asarray(dataset.probabilities[rows, code], dtype=np.float32)
    return np.stack([positive, 1.0 - positive], axis=1), predicted


def _one_hot(codes: IntArray, width: int) -> FloatArray:
    return np.asarray(codes[:, None] == np.arange(width), dtype=np.float32)


MIN_CLASS_SHARE = 0.3


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedGroup:
    """A group, what its embeddings were reduced by, its mixture, and held-out log-odds of every component [m, n]."""

    group: Group
    reduction: Reduction
    mixture: Mixture
    odds: DoubleArray

    def components_of(self, place: int) -> IntArray:
        """Return the components to which the class of a problem contributes a large share."""
        return np.flatnonzero(self.mixture.label_profiles[:, place] >= MIN_CLASS_SHARE)

    def surplus(self, component: int) -> float:
        """Return by how much a label is predicted more often than it is true in a component, for the label where that is most."""
        profile = self.mixture.prediction_profiles[component].copy()
        np.subtract.at(
            profile, np.asarray(self.group.columns), self.mixture.label_profiles[component]
        )
        return float(profile.max())

    def rule(self, component: int, threshold: float, *, space: str, encoder_id: str) -> MixtureRule:
        return MixtureRule(
            space=space,
            encoder_id=encoder_id,
            centre=PackedArray.of(self.reduction.centre),
            projection=PackedArray.of(self.reduction.projection),
            means=PackedArray.of(self.mixture.means),
            variances=PackedArray.of(self.mixture.variances),
            log_weights=tuple(self.mixture.log_weights.tolist()),
            chosen=component,
            threshold=threshold,
        )


BIC_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MIN_COMPONENTS = 2
N_FOLDS = 5
BESIDE_OTHERS: dict[str, JsonValue] = {"max_samples": 2_000}
"""Beside other methods it need not see every sample of a large class; named alone it does."""


@dataclass(frozen=True, kw_only=True)
class MixtureDiscoverer(ClassDiscoverer):
    """Finds slices as components of an error-aware mixture; membership is by the embedding alone.

    After Eyuboglu and others, *Domino: Discovering Systematic Errors with Cross-Modal Embeddings* (2022), and Plumb and others,
    *Towards a More Rigorous Science of Blindspot Discovery in Image Classification Models* (2023).

    Args:
        space: which embeddings are read.
        n_components: how many components; `bic` tries 2 to 64 and takes the best by the Bayesian information criterion.
        n_slices: at most so many slices a class.
        per_class: whether every class gets a mixture of its own; otherwise one mixture serves all classes (multi-label: one
            serves the samples that have a label and those that lack it).
        ranking: `separation`: association of held-out membership with failure; `errors`: failures times failure rate inside;
            `profile`: largest surplus of the predicted over the true label in the component.
        cut: where membership begins. `separating`: at the held-out score that separates the class's failures best; `posterior`:
            where the component is likelier than all others together.
        start: where fitting begins: `k-means` parts of the embeddings, or parts of the `confusion` matrix.
        label_weight: how much the label counts beside the embedding.
        prediction_weight: how much the prediction counts beside the embedding.
        n_dimensions: principal components of the embeddings that are kept at most.
        rows_per_dimension: no more dimensions are kept than there are so many samples for each.
        rows_per_component: there are no more components than there are so many samples for each, and at least two.
        regularisation: added to every variance, in units of the mean variance.
        variance_prior: a component's variances are drawn towards the mean of all components' as if by so many further samples.
        tolerance: fitting ends when the mean log-likelihood grows by less.
        n_steps: fitting ends after so many steps.
        min_members: slices with fewer samples are not reported.
        min_failures: classes and slices with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        max_samples: a mixture is fitted to a random part of more samples than this.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = MixtureDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 16)
    """

    method = "mixture"
    needs = (Need.EMBEDDINGS,)
    auto_place = 7
    auto_parameters = BESIDE_OTHERS
    space: str = "clip"
    n_components: Annotated[int, Bounds(ge=MIN_COMPONENTS)] | Literal["bic"] = 25
    n_slices: Count = 5
    per_class: bool = True
    ranking: Literal["separation", "errors", "profile"] = "separation"
    cut: Literal["separating", "posterior"] = "separating"
    start: Literal["k-means", "confusion"] = "k-means"
    label_weight: NonNegative = 10.0
    prediction_weight: NonNegative = 10.0
    n_dimensions: Count = 128
    rows_per_dimension: Positive = 20.0
    rows_per_component: Positive = 20.0
    regularisation: Positive = 1e-6
    variance_prior: NonNegative = 100.0
    tolerance: NonNegative = 1e-3
    n_steps: Count = 100
    min_members: Count = 5
    min_failures: Count = 2
    min_right: Count = 2
    max_samples: Count = 200_000

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return the components that gather failures of a class, and a note for every class without any."""
        del assistants
        problems = class_problems(samples.dataset, samples.rows, criterion)
        use = DataUse.of(samples)
        ranked: list[tuple[float, FailureSlice]] = []
        notes: list[ClassNote] = []
        n_considered = 0
        for group in groups_of(samples, problems, self.space, per_class=self.per_class):
            fitted = self._fit(samples, group, seed=seed)
            looked_at = group if fitted is None else fitted.group
            for place, problem in enumerate(group.problems):
                places, known = looked_at.known(place)
                note = obstacle(
                    known,
                    min_failures=self.min_failures,
                    min_right=self.min_right,
                    n_without=looked_at.n_without[place],
                )
                if fitted is None:
                    best, nothing = [], "The embeddings of all samples are alike."
                else:
                    of = self._of(samples, problem, use, seed)
                    n_considered += len(fitted.components_of(place))
                    best = [] if note else self._best(of, fitted, place, places, known)
                    failures = f"The {known.n_failed} failures among {len(known.rows)} samples"
                    nothing = f"{failures} gather in no component of the mixture."
                ranked += best
                if not best:
                    notes.append(ClassNote(class_name=problem.title, note=note or nothing))
        slices = [slice_ for _, slice_ in sorted(ranked, key=lambda pair: -pair[0])]
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _best(
        self,
        of: ClassSamples,
        fitted: FittedGroup,
        place: int,
        places: IntArray,
        known: ClassProblem,
    ) -> list[tuple[float, FailureSlice]]:
        """Return the components that gather failures of a class, best first, with what they are ranked by.

        Args:
            of: the class.
            fitted: the mixture.
            place: which problem of the group the class is.
            places: where its samples are in the group.
            known: the same samples.
        """
        found: list[tuple[float, int, FailureSlice]] = []
        for component in fitted.components_of(place).tolist():
            scores = fitted.odds[component, places]
            threshold: float | None = 0.0
            if self.cut == "separating":
                threshold = separating_cut(scores, known.failed, min_inside=self.min_members)
            if threshold is None:
                continue
            inside: BoolArray = scores >= threshold
            n_inside, n_failed = int(inside.sum()), int(known.failed[inside].sum())
            strength = association(known.failed, inside)
            if n_inside < self.min_members or n_failed < self.min_failures or strength <= 0:
                continue
            rank = {
                "separation": strength,
                "errors": n_failed**2 / n_inside,
                "profile": fitted.surplus(component),
            }[self.ranking]
            slice_ = self.slice_of(
                of,
                fitted.rule(component, threshold, space=self.space, encoder_id=of.encoder_id),
                strength=strength,
                n_found=n_inside,
                more={"fitted_components": fitted.mixture.n_components},
            )
            found.append((round(rank, 9), component, slice_))
        found.sort(key=lambda entry: (-entry[0], entry[1]))
        return [(rank, slice_) for rank, _, slice_ in found[: self.n_slices]]

    def _fit(self, samples: SampleSet, group: Group, *, seed: int) -> FittedGroup | None:
        draws = generator(seed, self.method, group.title)
        if len(group.rows) > self.max_samples:
            group = group.only(np.sort(draws.permutation(len(group.rows))[: self.max_samples]))
        n_dimensions = max(
            1, min(self.n_dimensions, int(len(group.rows) / self.rows_per_dimension))
        )
        reduction = fit_reduction(samples, self.space, group.rows, n_dimensions=n_dimensions)
        if reduction is None:
            return None
        reduced = reduction.apply(samples, self.space, group.rows)
        material = Material.of(
            reduced, group.labels, group.predictions, n_labels=len(group.problems)
        )
        mixture = self._mixture(material, group, draws)
        together = several_to_a_group(samples.dataset.groups[group.rows])
        folds = (
            draws.permutation(len(material)) % N_FOLDS
            if together is None
            else deal_folds(together, N_FOLDS, draws)
        )
        odds = held_out_odds(material, mixture, self._fit_settings(), folds)
        return FittedGroup(group=group, reduction=reduction, mixture=mixture, odds=odds)

    def _mixture(self, material: Material, group: Group, draws: np.random.Generator) -> Mixture:
        most = max(MIN_COMPONENTS, int(len(material) / self.rows_per_component))
        if self.n_components != "bic":
            return self._of_size(material, group, min(self.n_components, most), draws)
        fits = [self._of_size(material, group, size, draws) for size in BIC_SIZES if size <= most]
        return min(fits, key=lambda fit: bayesian_criterion(fit, len(material)))

    def _of_size(
        self, material: Material, group: Group, size: int, draws: np.random.Generator
    ) -> Mixture:
        if self.start == "k-means":
            parts = k_means_parts(material.reduced, size, draws)
        else:
            columns = np.asarray(group.columns, dtype=np.int64)[group.labels]
            parts = confusion_parts(material.reduced, columns, group.predicted, size, draws)
        return fit_mixture(material, parts, self._fit_settings(), n_components=size)

    def _fit_settings(self) -> FitSettings:
        return FitSettings(
            label_weight=self.label_weight,
            prediction_weight=self.prediction_weight,
            regularisation=self.regularisation,
            variance_prior=self.variance_prior,
            tolerance=self.tolerance,
            n_steps=self.n_steps,
        )

    def _of(
        self, samples: SampleSet, problem: ClassProblem, use: DataUse, seed: int
    ) -> ClassSamples:
        """Return a class whose embeddings are read elsewhere, together with those of others."""
        return ClassSamples(
            samples=samples,
            problem=problem,
            embeddings=np.zeros((len(problem.rows), 0), dtype=np.float32),
            space=self.space,
            obstacle="",
            found_on=use,
            seed=seed,
        )
