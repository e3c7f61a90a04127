"""Searches for captions on whose images a classifier fails more often than on images of the class alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.core.errors import NotEnoughDataError, RefusedPromptError
from weakspot.core.failures import FailureCriterion, describe_criterion
from weakspot.core.run import Progress, no_progress
from weakspot.generation.search.caption_measurement import WorstGroupObjective
from weakspot.generation.search.clusters import SMALLEST, FailureCluster, failure_clusters
from weakspot.generation.search.prompts import (
    baseline_prompt,
    caption_of,
    parent_of,
    sentences_of,
    whole_prompt,
    wordnet_hierarchy,
)
from weakspot.generation.search.records import CaptionTrial, StoppedBecause
from weakspot.generation.search.refinement import Refinement, Sentences, n_content_words, said_words
from weakspot.generation.search.sampling import KnowsControls, Sampler
from weakspot.generation.search.search_records import (
    CaptionFinding,
    CaptionSearch,
    ClassSearch,
    ClusterRecord,
)
from weakspot.generation.search.sentences import CaptionEffort, CaptionWriter
from weakspot.lexicon.captions import content_words, noun_of

N_EXAMPLES = 16
MOST_SUSPICIONS = 3
MOST_CONTROL = 0.1
"""By how much the control of a caption may raise the failure rate; beyond that nothing is claimed of the caption."""


def search_failures(
    sampler: Sampler, request: CaptionSearch, progress: Progress = no_progress
) -> ClassSearch:
    """Search for failures of one class; nothing is random but the sampler's images.

    Args:
        sampler: generates images and says what it knows of them.
        request: where and how to search.
        progress: told images generated and the budget.

    Raises:
        DataError: if the classifier does not know the class or the target.
        RefusedPromptError: if the generator cannot generate the class at all.
        NotEnoughDataError: if no image of the class passes the quality check.
    """
    group_objective = WorstGroupObjective(
        sampler,
        class_name=request.class_name,
        criterion=usable_criterion(request.criterion, sampler.class_names, parents=request.parents),
        design=request.design,
        target=request.target,
        progress=progress,
    )
    parent = parent_of(
        request.class_name, other_classes=sampler.class_names, parents=request.parents
    )
    baseline = baseline_prompt(request.class_name, template=request.template, parent=parent)
    _refuse_nothing(group_objective.baseline(baseline, enough_failures=request.enough_failures))
    search = _Search(
        sampler=sampler, request=request, group_objective=group_objective, baseline=baseline
    )
    search.try_own_captions()
    search.try_clusters()
    search.drop_longer_ones()
    search.drop_what_controls_explain()
    return search.result()


def usable_criterion(
    criterion: FailureCriterion,
    class_names: Sequence[str],
    *,
    parents: Mapping[str, str] | None = None,
) -> FailureCriterion:
    """Return the criterion, with the hierarchy that the brackets of the prompts tell if it needs one and has none."""
    if criterion.kind != "parent" or criterion.hierarchy.parents:
        return criterion
    return replace(criterion, hierarchy=wordnet_hierarchy(class_names, parents=parents))


def _refuse_nothing(baseline: CaptionTrial) -> None:
    if baseline.can_be_generated:
        return
    if baseline.stopped_because is StoppedBecause.REFUSED:
        raise RefusedPromptError(
            "The generator cannot generate the baseline prompt.",
            given=baseline.prompt,
            fix=f"Change the setting search.prompt. {baseline.note}",
        )
    raise NotEnoughDataError(
        "No image of the baseline prompt passed the quality check.",
        given=baseline.rejected,
        fix="Look at the rejected images.",
    )


@dataclass(kw_only=True, eq=False)
class _Search:
    """One search under way: what was found so far, and what there is to say of it."""

    sampler: Sampler
    request: CaptionSearch
    group_objective: WorstGroupObjective
    baseline: str
    found: list[tuple[Sentences, CaptionTrial, CaptionTrial]] = field(default_factory=list)
    clusters: list[ClusterRecord] = field(default_factory=list)
    left_out: dict[str, None] = field(default_factory=dict)
    unclaimed: dict[str, str] = field(default_factory=dict)

    @property
    def refinement(self) -> Refinement:
        own = frozenset(content_words(noun_of(self.request.class_name)))
        return Refinement(
            group_objective=self.group_objective,
            baseline=self.baseline,
            class_words=own,
            reword=self.request.reword,
        )

    def try_own_captions(self) -> None:
        """Measure a person's captions, all of them together."""
        wanted = [
            sentences for sentences in map(sentences_of, self.request.own_captions) if sentences
        ]
        pairs = [
            (caption_of(sentences), whole_prompt(self.baseline, sentences)) for sentences in wanted
        ]
        trials = self.group_objective.try_captions(pairs, step="user") if pairs else ()
        self.found += [
            (said, trial, trial)
            for said, trial in zip(wanted, trials, strict=True)
            if trial.is_proven
        ]

    def try_clusters(self) -> None:
        """Caption the baseline's failures cluster by cluster, and shorten what is proven."""
        failures = self.group_objective.failures_of_baseline()
        clusters = failure_clusters(
            failures.keys,
            failures.labels,
            self.sampler.embeddings(failures.keys),
            most_clusters=self.request.most_clusters,
        )
        has_groups = any(len(cluster) >= SMALLEST for cluster in clusters)
        writer = CaptionWriter(
            sampler=self.sampler,
            baseline=self.baseline,
            right_keys=self._right_keys(),
            avoided=tuple(sorted(set(failures.labels) - {self.request.class_name})),
            effort=CaptionEffort(most_sentences=self.request.most_sentences),
        )
        for cluster in clusters:
            if len(cluster) >= SMALLEST or not has_groups:
                caption, note = self._try_cluster(cluster, writer)
                self.clusters.append(_cluster_record(cluster, caption, note))

    def _right_keys(self) -> tuple[str, ...]:
        n_asked = self.group_objective.baseline_trial.n_asked
        draws = self.sampler.generate(self.baseline, self.request.class_name, first=0, n=n_asked)
        code = self.sampler.class_names.index(self.request.class_name)
        is_right = np.argmax(draws.probabilities, axis=1) == code
        return tuple(key for key, right in zip(draws.keys, is_right, strict=True) if right)

    def _try_cluster(self, cluster: FailureCluster, writer: CaptionWriter) -> tuple[str, str]:
        members = self._unexplained(cluster.keys, writer)
        if len(members) < min(SMALLEST, len(cluster)):
            return "", "what was found before explains it"
        captioned = writer.caption(
            members, self._unexplained(self.group_objective.failures_of_baseline().keys, writer)
        )
        self.left_out.update(dict.fromkeys(captioned.left_out))
        if not captioned.sentences:
            return "", "nothing sets it apart from images that are right"
        refinement = self.refinement
        whole = refinement.tried(captioned.sentences, step="cluster")
        self._keep_if_proven(captioned.sentences, whole)
        if whole.stopped_because is StoppedBecause.REFUSED and len(captioned.sentences) > 1:
            for sentence in captioned.sentences:
                self._keep_if_proven((sentence,), refinement.tried((sentence,), step="sentence"))
        return caption_of(captioned.sentences), "" if whole.can_be_generated else whole.note

    def _keep_if_proven(self, sentences: Sentences, trial: CaptionTrial) -> None:
        if trial.is_proven:
            refined = self.refinement.shortest(sentences, trial)
            self.found.append((refined.sentences, refined.trial, trial))

    def drop_longer_ones(self) -> None:
        """Leave out what says more than another finding and does not fail more often."""
        kept: list[tuple[Sentences, CaptionTrial, CaptionTrial]] = []
        for said, trial, whole in sorted(self.found, key=lambda one: n_content_words(one[0])):
            shorter = [
                other
                for words, other, _ in kept
                if trial.step != "user" and _says(caption_of(said), words)
            ]
            if not any(self.refinement.fails_as_often(other, trial) for other in shorter):
                kept.append((said, trial, whole))
        self.found = kept

    def drop_what_controls_explain(self) -> None:
        """Leave out what is not claimed because the images fail more often already when all is done to them but the change."""
        sampler = self.sampler
        if not isinstance(sampler, KnowsControls):
            return
        for one in list(self.found):
            control = sampler.control_for(one[1].prompt)
            if not control or control in one[1].caption:
                continue
            trial = self.refinement.tried((f"{control}.",), step="control")
            change = trial.rate.value - self.group_objective.baseline_trial.rate.value
            if trial.is_proven or not trial.can_be_generated or change > MOST_CONTROL:
                self.found.remove(one)
                self.unclaimed[one[1].caption] = (
                    f"No claim of “{one[1].caption}”: the control “{control}” alone changes failures by {100 * change:+.0f} points "
                    f"on {trial.n_images} images, more than {100 * MOST_CONTROL:.0f} or beyond chance."
                )

    @property
    def _suspicions(self) -> tuple[CaptionTrial, ...]:
        """Return what fails more often by as much as matters and ran out of objects before that was proven, most often first."""
        found = [
            one
            for one in self.group_objective.trials
            if one.n_views and not one.is_proven and one.step != "control"
            if one.difference is not None and (one.difference.value or 0.0) >= self._smallest_gain
        ]
        return tuple(sorted(found, key=lambda one: -one.rate.value))[:MOST_SUSPICIONS]

    @property
    def _smallest_gain(self) -> float:
        return self.request.design.smallest_gain

    def _unexplained(self, keys: Sequence[str], writer: CaptionWriter) -> list[str]:
        """Return the images whose own captions say nothing that was found already."""
        if not self.found:
            return list(keys)
        own = zip(keys, writer.said(keys), strict=True)
        return [key for key, text in own if not any(_says(text, said) for said, _, _ in self.found)]

    def result(self) -> ClassSearch:
        failures = self.group_objective.failures_of_baseline()
        trials = self.group_objective.trials
        return ClassSearch(
            class_name=self.request.class_name,
            target=self.request.target,
            criterion=describe_criterion(self._counted),
            baseline=self.group_objective.baseline_trial,
            trials=trials,
            findings=self._findings(trials),
            clusters=tuple(self.clusters),
            example_keys=failures.keys[:N_EXAMPLES],
            caption_source=self.sampler.caption_source,
            notes=self._notes(trials),
            n_images=self.group_objective.n_asked,
            suspicions=tuple(one.caption for one in self._suspicions),
        )

    @property
    def _counted(self) -> FailureCriterion:
        target = self.request.target
        return FailureCriterion(kind="target", target=target) if target else self.request.criterion

    def _findings(self, trials: Sequence[CaptionTrial]) -> tuple[CaptionFinding, ...]:
        """Return what is proven in the end, each caption once, corrected for reporting these only."""
        now = {trial.prompt: trial for trial in trials}
        chosen: dict[str, CaptionTrial] = {}
        for _, short, whole in self.found:
            last = next(
                (now[one.prompt] for one in (short, whole) if now[one.prompt].is_proven), None
            )
            if last is not None:
                chosen.setdefault(last.prompt, now[whole.prompt])
        found = [
            CaptionFinding(
                trial=trial,
                whole=chosen[trial.prompt],
                example_keys=self.group_objective.failed_images(trial).keys[:N_EXAMPLES],
            )
            for trial in self.group_objective.proven_among([now[prompt] for prompt in chosen])
        ]
        return tuple(sorted(found, key=lambda finding: -finding.trial.rate.value))

    def _notes(self, trials: Sequence[CaptionTrial]) -> tuple[str, ...]:
        baseline = self.group_objective.baseline_trial
        refused = [
            trial.caption for trial in trials if trial.stopped_because is StoppedBecause.REFUSED
        ]
        notes = [f"Captions come from: {self.sampler.caption_source}."]
        notes += self.unclaimed.values()
        if baseline.n_views:
            notes.append(
                f"{baseline.n_images + baseline.n_views} images of the baseline prompt show {baseline.n_images} different objects "
                "of yours; each object counts once, and the others are only looked at."
            )
        notes += [
            f"Not proven: “{one.caption}” fails on {one.failures} of {one.n_images} objects, without it {baseline.failures} of "
            f"{baseline.n_images}; there are no more. Ask your own images: weakspot hypothesis, or --prove."
            for one in self._suspicions
        ]
        n_kept = baseline.n_images + baseline.n_views
        if 2 * n_kept < baseline.n_asked:
            why = ", ".join(f"{number} {quality}" for quality, number in baseline.rejected.items())
            notes.append(
                f"Only {n_kept} of {baseline.n_asked} images of the baseline prompt passed the quality check ({why}): "
                "little can be found with so few different images."
            )
        if not baseline.failures:
            notes.append(
                f"None of {baseline.n_images} images of the baseline prompt failed: there was nothing to caption."
            )
        if refused:
            notes.append(
                f"The generator cannot generate {len(refused)} captions: {'; '.join(refused)}"
            )
        if self.left_out:
            notes.append(
                f"Sentences that name a label which failures were taken for were left out: {'; '.join(self.left_out)}."
            )
        if self.group_objective.is_spent:
            notes.append("The budget is used up; with a larger one, more could be found.")
        return tuple(notes)


def _cluster_record(cluster: FailureCluster, caption: str, note: str) -> ClusterRecord:
    return ClusterRecord(
        predicted=cluster.predicted,
        size=len(cluster),
        example_keys=cluster.keys[:N_EXAMPLES],
        caption=caption,
        note=note,
    )


def _says(text: str, sentences: Sequence[str]) -> bool:
    own = [set(said_words(sentence)) for sentence in sentences_of(text)]
    return all(any(set(said_words(sentence)) <= words for words in own) for sentence in sentences)
