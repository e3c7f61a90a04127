"""Failures as components of a mixture over embeddings, labels and predictions."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Bounds, Count, NonNegative, Positive, check_bounds
from weakspot.core.dataset import Dataset, Task, several_to_a_group
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


Ranking = Literal["separation", "errors", "profile"]
Cut = Literal["separating", "posterior"]
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A component with a threshold.

    Args:
        component: which one.
        threshold: least log-odds of members.
        n_inside: members among the samples of the class.
        strength: association of held-out membership with failure.
        rank: larger is reported first.
    """

    component: int
    threshold: float
    n_inside: int
    strength: float
    rank: float


@dataclass(frozen=True, kw_only=True)
class CandidateSettings:
    """What makes a component a slice of a class; the fields are those of the discoverer."""

    ranking: Ranking
    cut: Cut
    min_members: int
    min_failures: int


def candidates(
    fitted: FittedGroup,
    place: int,
    places: IntArray,
    problem: ClassProblem,
    settings: CandidateSettings,
) -> Iterator[Candidate]:
    """Yield the components that gather failures of a class.

    Args:
        fitted: the mixture.
        place: which problem of the group.
        places: where its samples are in the group.
        problem: the same samples.
        settings: what is asked of a slice.
    """
    for component in fitted.components_of(place):
        scores = fitted.odds[component, places]
        threshold = (
            0.0
            if settings.cut == "posterior"
            else separating_cut(scores, problem.failed, min_inside=settings.min_members)
        )
        if threshold is None:
            continue
        inside: BoolArray = scores >= threshold
        n_inside, n_failed = int(inside.sum()), int(problem.failed[inside].sum())
        strength = association(problem.failed, inside)
        if n_inside < settings.min_members or n_failed < settings.min_failures or strength <= 0:
            continue
        ranks = {
            "separation": strength,
            "errors": n_failed**2 / n_inside,
            "profile": fitted.surplus(int(component)),
        }
        rank = round(ranks[settings.ranking], 9)
        yield Candidate(
            component=int(component),
            threshold=threshold,
            n_inside=n_inside,
            strength=strength,
            rank=rank,
        )


METHOD = "mixture"
BIC_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MIN_COMPONENTS = 2
N_FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class MixtureDiscoverer:
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

    space: str = "clip"
    n_components: Annotated[int, Bounds(ge=MIN_COMPONENTS)] | Literal["bic"] = 25
    n_slices: Count = 5
    per_class: bool = True
    ranking: Ranking = "separation"
    cut: Cut = "separating"
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

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        return False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need.EMBEDDINGS,)

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
        found_on = DataUse.of(samples)
        ranked: list[tuple[float, FailureSlice]] = []
        notes: list[ClassNote] = []
        n_considered = 0
        for group in groups_of(samples, problems, self.space, per_class=self.per_class):
            fitted = self._fit(samples, group, seed=seed)
            for place, problem in enumerate(group.problems):
                best, note = self._best(group if fitted is None else fitted.group, fitted, place)
                n_considered += 0 if fitted is None else len(fitted.components_of(place))
                ranked += [
                    (item.rank, self._slice(samples, fitted, problem, item, found_on))
                    for item in best
                    if fitted
                ]
                if not best:
                    notes.append(ClassNote(class_name=problem.title, note=note))
        slices = [found for _, found in sorted(ranked, key=lambda pair: -pair[0])]
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _best(
        self, group: Group, fitted: FittedGroup | None, place: int
    ) -> tuple[list[Candidate], str]:
        places, known = group.known(place)
        n_without = group.n_without[place]
        note = obstacle(
            known, min_failures=self.min_failures, min_right=self.min_right, n_without=n_without
        )
        if note:
            return [], note
        if fitted is None:
            return [], "The embeddings of all samples are alike."
        settings = CandidateSettings(
            ranking=self.ranking,
            cut=self.cut,
            min_members=self.min_members,
            min_failures=self.min_failures,
        )
        found = sorted(
            candidates(fitted, place, places, known, settings),
            key=lambda item: (-item.rank, item.component),
        )
        failures = f"The {known.n_failed} failures among {len(known.rows)} samples"
        return found[: self.n_slices], f"{failures} gather in no component of the mixture."

    def _fit(self, samples: SampleSet, group: Group, *, seed: int) -> FittedGroup | None:
        draws = generator(seed, METHOD, group.title)
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

    def _slice(
        self,
        samples: SampleSet,
        fitted: FittedGroup,
        problem: ClassProblem,
        item: Candidate,
        found_on: DataUse,
    ) -> FailureSlice:
        rule = _rule(
            fitted.reduction,
            fitted.mixture,
            item,
            space=self.space,
            encoder_id=samples.space(self.space).encoder_id,
        )
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method=METHOD,
            parameters={**asdict(self), "fitted_components": fitted.mixture.n_components},
            found_on=found_on,
            strength=item.strength,
            n_found=item.n_inside,
        )


def _rule(
    reduction: Reduction, mixture: Mixture, item: Candidate, *, space: str, encoder_id: str
) -> MixtureRule:
    return MixtureRule(
        space=space,
        encoder_id=encoder_id,
        centre=PackedArray.of(reduction.centre),
        projection=PackedArray.of(reduction.projection),
        means=PackedArray.of(mixture.means),
        variances=PackedArray.of(mixture.variances),
        log_weights=tuple(mixture.log_weights.tolist()),
        chosen=item.component,
        threshold=item.threshold,
    )
