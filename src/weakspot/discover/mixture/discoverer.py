"""Failures as components of a mixture over embeddings, labels and predictions.

After Eyuboglu and others, *Domino: Discovering Systematic Errors with Cross-Modal Embeddings* (2022); ranking by errors and the
choice of size after Plumb and others, *Towards a More Rigorous Science of Blindspot Discovery in Image Classification Models*
(2023). `docs/reference/methods.md` says where this departs from the papers and why.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np

from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.bounds import Bounds, Count, NonNegative, Positive, check_bounds
from weakspot.core.class_embeddings import obstacle
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.group_dealing import deal_folds
from weakspot.core.groups import several_to_a_group
from weakspot.core.needs import Need
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import MixtureRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.mixture.components import (
    Candidate,
    CandidateSettings,
    Cut,
    FittedGroup,
    Ranking,
    candidates,
)
from weakspot.discover.mixture.groups import Group, groups_of
from weakspot.discover.mixture.mixture_fit import (
    FitSettings,
    Material,
    Mixture,
    bayesian_criterion,
    fit_mixture,
    held_out_odds,
)
from weakspot.discover.mixture.reduction import Reduction, fit_reduction
from weakspot.discover.mixture.starting import confusion_parts, k_means_parts

METHOD = "mixture"
BIC_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
FEWEST_COMPONENTS = 2
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
    n_components: Annotated[int, Bounds(ge=FEWEST_COMPONENTS)] | Literal["bic"] = 25
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
        assistants: Assistants = NOBODY,
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
        most = max(FEWEST_COMPONENTS, int(len(material) / self.rows_per_component))
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
