"""Searches for captions on whose images a classifier fails more often than on images of the class alone.

What a search is asked and what it finds, clusters of failures, and the search itself.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import DoubleArray, FloatArray, IntArray
from weakspot.core.errors import ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.core.failures import FailureCriterion, describe_criterion
from weakspot.core.record import Record
from weakspot.core.roles import TextGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.generate.search.sentences import (
    CaptionWriter,
    baseline_prompt,
    caption_of,
    parent_of,
    sentences_of,
    whole_prompt,
    wordnet_hierarchy,
)
from weakspot.generate.search.series import (
    CaptionTrial,
    CaptionTrials,
    JudgedImage,
    Sampler,
    StoppedBecause,
    TrialStep,
)
from weakspot.run.settings import SearchSettings
from weakspot.words.caption_rule import PREPOSITIONS
from weakspot.words.captions import content_words, noun_of, with_article
from weakspot.words.wordnet import is_known

N_WORDINGS = 4
ASKED = (
    'A photograph of {class} is described so: "{caption}" Say the same in fewer words, in {n} different ways, each as one short plain '
    "sentence that begins with “it is”, “there is” or “the background is”. Add nothing, and do not name {class}."
)
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"captions": {"type": "array", "items": {"type": "string"}}},
    "required": ["captions"],
}

ENOUGH_FAILURES = 16


def shorter_wordings(
    caption: str, *, language: TextGenerator, class_name: str, seed: int = 0
) -> tuple[str, ...]:
    """Return shorter wordings of a caption, best first; each is measured like any other before it counts.

    An answer that is of no use gives none.
    """
    asked = ASKED.replace("{class}", noun_of(class_name)).replace("{n}", str(N_WORDINGS))
    try:
        said = language.generate(asked.replace("{caption}", caption), schema=SCHEMA, seed=seed)
        texts = json.loads(said)["captions"]
    except (ModelError, ValueError, KeyError, TypeError):
        return ()
    texts = texts if isinstance(texts, list) else []
    return tuple(text for text in texts if isinstance(text, str) and text.strip())[:N_WORDINGS]


_MAX_ADJECTIVES = 4
_NO_ADJECTIVES_TEXT = (
    "a an the its his her their some another one two three four five six seven eight nine ten there"
)
_EMPTY_TEXT = "it there are they this that"
_NO_ADJECTIVES = frozenset(_NO_ADJECTIVES_TEXT.split())
_EMPTY = frozenset(_EMPTY_TEXT.split())
_ARTICLE = re.compile(r"\b(a|an) (\w[\w'-]*)")


def without_adjectives(sentence: str) -> tuple[str, ...]:
    """Return a sentence with one or more of the adjectives left out that stand before something, shortest first.

    An adjective that is all that is said ("the background is green") stays.

    >>> without_adjectives("it is on a small yellow flower")
    ('it is on a flower', 'it is on a small flower', 'it is on a yellow flower')
    >>> without_adjectives("the background is green")
    ()
    """
    words = sentence.split()
    places = [
        place for place in range(len(words) - 1) if _stands_before(words[place], words[place + 1])
    ][:_MAX_ADJECTIVES]
    shorter = [
        " ".join(word for place, word in enumerate(words) if place not in dropped)
        for size in range(len(places), 0, -1)
        for dropped in combinations(reversed(places), size)
    ]
    with_right_articles = (
        _ARTICLE.sub(lambda found: with_article(found.group(2)), said) for said in shorter
    )
    return tuple(dict.fromkeys(with_right_articles))


def _stands_before(word: str, following: str) -> bool:
    if (
        word in _NO_ADJECTIVES | PREPOSITIONS
        or not content_words(word)
        or not is_known(word, "adj")
    ):
        return False
    can_be_described = is_known(following, "noun") or is_known(following, "adj")
    return (
        can_be_described
        and following not in PREPOSITIONS
        and bool(content_words(following, with_carriers=True))
    )


def n_content_words(sentences: Sequence[str]) -> int:
    """Return how many words of sentences carry meaning.

    >>> n_content_words(["it is on a yellow flower", "the background is green"])
    3
    """
    return sum(
        len([word for word in said_words(sentence) if content_words(word)])
        for sentence in sentences
    )


def said_words(sentence: str) -> tuple[str, ...]:
    return tuple(word for word in content_words(sentence, with_carriers=True) if word not in _EMPTY)


Sentences = tuple[str, ...]
SAME_SHARE = 0.4
MIN_MARGIN = 0.1
ERROR_RATE = 0.05
FEWEST = 48


Refined = tuple[Sentences, CaptionTrial]
"""The shortest caption that fails as often as a proven one, and what was measured of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Refinement:
    """Looks for a shorter caption that fails as often as a proven one.

    Every sentence is tried alone, the most telling one first; once one fails as often, only sentences that are shorter still can
    win and only those are tried. If no single sentence does, sentences are left out one by one. Then adjectives are left out.
    Whatever is tried counts as a trial, and is corrected for. A shorter caption fails as often unless it loses two fifths
    of what the whole one gains over the baseline; either answer is wrong once in twenty times. Both get some images more first,
    because a caption that is proven as soon as possible was lucky more often than not.

    Args:
        trials: where captions are tried.
        baseline: the prompt without a caption.
        class_words: words of the class; a sentence that says no more than these says nothing.
        reword: shorter wordings of a caption, tried last; None if there is nobody to ask.
    """

    trials: CaptionTrials
    baseline: str
    class_words: frozenset[str] = frozenset()
    reword: Callable[[str], Sequence[str]] | None = None

    def shortest(self, sentences: Sentences, whole: CaptionTrial) -> Refined:
        best = sentences, whole
        if len(sentences) > 1:
            best = self._single(sentences, whole) or self._fewer(sentences, whole)
        return self._reworded(self._plainer(best, whole), whole)

    def tried(self, sentences: Sequence[str], *, step: TrialStep) -> CaptionTrial:
        return self.trials.try_captions(
            [(caption_of(sentences), whole_prompt(self.baseline, sentences))], step=step
        )[0]

    def fails_as_often(self, shorter: CaptionTrial, whole: CaptionTrial) -> bool:
        """Return whether a shorter caption keeps what a longer one gains over the baseline."""
        gain = whole.rate.value - self.trials.baseline_trial.rate.value
        margin = max(MIN_MARGIN, SAME_SHARE * gain)
        return self.trials.same_rate(
            shorter, whole, margin=margin, error_rate=ERROR_RATE, fewest=FEWEST
        )

    def _equal(
        self, sentences: Sentences, whole: CaptionTrial, *, step: TrialStep
    ) -> Refined | None:
        trial = self.tried(sentences, step=step)
        is_equal = trial.is_proven and self.fails_as_often(trial, whole)
        return (sentences, trial) if is_equal else None

    def _single(self, sentences: Sentences, whole: CaptionTrial) -> Refined | None:
        best: Refined | None = None
        for sentence in sentences:
            if best is None or n_content_words([sentence]) < n_content_words(best[0]):
                best = self._equal((sentence,), whole, step="sentence") or best
        return best

    def _fewer(self, sentences: Sentences, whole: CaptionTrial) -> Refined:
        """Leave out sentences, the least telling first, as long as the rest fails as often."""
        best = sentences, whole
        for sentence in reversed(sentences):
            rest = tuple(one for one in best[0] if one != sentence)
            if len(rest) > 1:
                best = self._equal(rest, whole, step="sentence") or best
        return best

    def _plainer(self, best: Refined, whole: CaptionTrial) -> Refined:
        """Leave out adjectives of every sentence, as many as possible first."""
        for place in range(len(best[0])):
            for plainer in without_adjectives(best[0][place]):
                if set(said_words(plainer)) <= self.class_words:
                    continue
                others = (*best[0][:place], plainer, *best[0][place + 1 :])
                shorter = self._equal(others, whole, step="adjective")
                if shorter is not None:
                    best = shorter
                    break
        return best

    def _reworded(self, best: Refined, whole: CaptionTrial) -> Refined:
        """Try what a language model says in fewer words, the shortest first."""
        if self.reword is None:
            return best
        proposed = {sentences_of(text) for text in self.reword(caption_of(best[0]))}
        for sentences in sorted(proposed, key=lambda one: (n_content_words(one), one)):
            is_shorter = 0 < n_content_words(sentences) < n_content_words(best[0])
            words = {word for sentence in sentences for word in said_words(sentence)}
            if not is_shorter or words <= self.class_words:
                continue
            reworded = self._equal(sentences, whole, step="reworded")
            if reworded is not None:
                return reworded
        return best


@dataclass(frozen=True, kw_only=True)
class CaptionSearch:
    """Where and how to search.

    Args:
        class_name: whose failures are searched for.
        target: count only failures towards this class.
        criterion: when an answer is a failure; `parent` without a hierarchy takes the one that the brackets of the prompts tell.
        parents: what classes are kinds of; WordNet says it for those that are not here.
        settings: the baseline prompt, how much is generated, and what is promised.
        until_target_failures: go on with a promising caption until so many failures that count, 0 to stop when it is proven.
        enough_failures: failures of the baseline that are wanted before they are clustered, if `settings.most_baseline` allows.
        own_captions: a person's captions, measured first.
        reword: shorter wordings of a caption, such as a language model's; None if there is nobody to ask.
    """

    class_name: str
    target: str | None = None
    criterion: FailureCriterion = field(default_factory=FailureCriterion)
    parents: Mapping[str, str] = field(default_factory=dict)
    settings: SearchSettings = field(default_factory=SearchSettings)
    until_target_failures: int = 0
    enough_failures: int = ENOUGH_FAILURES
    own_captions: tuple[str, ...] = ()
    reword: Callable[[str], Sequence[str]] | None = None


class ClusterRecord(Record):
    """A cluster of the baseline's failures.

    Args:
        predicted: the label that they were taken for; empty when it holds failures of any label.
        size: how many images.
        example_keys: some of them.
        caption: what sets them apart; empty if nothing does.
        note: why the caption was not tried, if it was not.
    """

    predicted: str
    size: int
    example_keys: tuple[str, ...]
    caption: str = ""
    note: str = ""


class CaptionFinding(Record):
    """A caption that is proven to make the classifier fail more often, in its shortest form.

    Args:
        trial: what was measured of it, wrong labels included.
        whole: what was measured of the caption before it was shortened; the same if it was not.
        example_keys: images of it that failed.
    """

    trial: CaptionTrial
    whole: CaptionTrial
    example_keys: tuple[str, ...] = ()

    @property
    def is_shortened(self) -> bool:
        return self.trial.prompt != self.whole.prompt


class ClassSearch(Record):
    """Everything that a search found out about one class.

    Args:
        class_name: whose failures were searched for.
        target: the class that failures must be taken for, if one was given.
        criterion: when an answer was a failure, in words.
        baseline: the prompt without a caption, wrong labels included.
        trials: every caption that was tried, in order.
        findings: the proven ones in their shortest form, highest rate first.
        clusters: the baseline's failures, largest cluster first.
        example_keys: images of the baseline that failed.
        caption_source: who captioned.
        notes: what to know of the result.
        n_images: images ordered in all.
        suspicions: captions that fail more often by as much as matters, but too few different objects could be shown to prove it.
    """

    class_name: str
    target: str | None
    criterion: str
    baseline: CaptionTrial
    trials: tuple[CaptionTrial, ...]
    findings: tuple[CaptionFinding, ...]
    clusters: tuple[ClusterRecord, ...]
    example_keys: tuple[str, ...]
    caption_source: str
    notes: tuple[str, ...]
    n_images: int
    suspicions: tuple[str, ...] = ()


MIN_TO_SPLIT = 6
SMALLEST = 2
MIN_PARTS = 2
CLEAR_SILHOUETTE = 0.1


Cluster = tuple[str, tuple[str, ...]]
"""The label that failures were taken for, empty for any, and the images in the order in which they were generated."""


def failure_clusters(
    keys: Sequence[str], predicted: Sequence[str], embeddings: FloatArray, *, most_clusters: int
) -> tuple[Cluster, ...]:
    """Split failures by predicted label, and each label's failures by how they look; largest first.

    The number of clusters of a label is the one that separates them best (silhouette by cosine), and one where nothing separates
    them clearly. A label whose failures are divided is given as a whole too, and so are all failures together when there are
    several labels: a wrong division must not hide what all of them share.

    Args:
        keys: the failures.
        predicted: what each was taken for.
        embeddings: unit vectors [n, d] of them.
        most_clusters: most clusters of one label.
    """
    by_label: dict[str, list[int]] = {}
    for place, label in enumerate(predicted):
        by_label.setdefault(label, []).append(place)
    groups: list[tuple[str, list[int]]] = []
    for label, places in by_label.items():
        groups.append((label, places))
        groups += [
            (label, part)
            for part in _parts(places, embeddings[places], most_clusters)
            if len(part) >= SMALLEST
        ]
    if len(by_label) > 1:
        groups.append(("", list(range(len(keys)))))
    labels = {
        tuple(keys[place] for place in sorted(places)): label for label, places in reversed(groups)
    }
    clusters = [(label, members) for members, label in labels.items()]
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster[1]), *cluster)))


def _parts(places: Sequence[int], embeddings: FloatArray, most_clusters: int) -> list[list[int]]:
    if len(places) < MIN_TO_SPLIT or most_clusters < MIN_PARTS:
        return []
    numbers = _best_division(embeddings, most_clusters)
    return [
        [place for place, number in zip(places, numbers, strict=True) if number == one]
        for one in range(numbers.max() + 1)
    ]


def _best_division(embeddings: FloatArray, most_clusters: int) -> IntArray:
    """Return the cluster of every embedding [n] in the division with the clearest gaps."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    distances = _cosine_distances(embeddings)
    best, clearest = np.zeros(len(embeddings), dtype=np.int64), CLEAR_SILHOUETTE
    for n_clusters in range(MIN_PARTS, min(most_clusters, len(embeddings) // SMALLEST) + 1):
        division = AgglomerativeClustering(
            n_clusters=n_clusters, metric="precomputed", linkage="average"
        ).fit_predict(distances)
        if np.count_nonzero(np.bincount(division) >= SMALLEST) < MIN_PARTS:
            # Only single images were split off.
            continue
        clearness = float(silhouette_score(distances, division, metric="precomputed"))
        if clearness > clearest:
            best, clearest = np.asarray(division, dtype=np.int64), clearness
    return best


def _cosine_distances(embeddings: FloatArray) -> DoubleArray:
    products = embeddings.astype(np.float64) @ embeddings.astype(np.float64).T
    distances = np.clip(1.0 - (products + products.T) / 2, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    return np.asarray(distances)


N_EXAMPLES = 16
MAX_SUSPICIONS = 3
MAX_CONTROL = 0.1
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
    trials = CaptionTrials(
        sampler,
        class_name=request.class_name,
        criterion=usable_criterion(request.criterion, sampler.class_names, parents=request.parents),
        settings=request.settings,
        target=request.target,
        until_target_failures=request.until_target_failures,
        progress=progress,
    )
    parent = parent_of(
        request.class_name, other_classes=sampler.class_names, parents=request.parents
    )
    baseline = baseline_prompt(request.class_name, template=request.settings.prompt, parent=parent)
    first = trials.baseline(baseline, enough_failures=request.enough_failures)
    if first.stopped_because is StoppedBecause.REFUSED and not first.can_be_generated:
        raise RefusedPromptError(
            "The generator cannot generate the baseline prompt.",
            given=first.prompt,
            fix=f"Change the setting search.prompt. {first.note}",
        )
    if not first.can_be_generated:
        raise NotEnoughDataError(
            "No image of the baseline prompt passed the quality check.",
            given=first.rejected,
            fix="Look at the rejected images.",
        )
    search = _Search(sampler=sampler, request=request, trials=trials, baseline=baseline)
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


@dataclass(kw_only=True, eq=False)
class _Search:
    """One search under way: what was found so far, and what there is to say of it."""

    sampler: Sampler
    request: CaptionSearch
    trials: CaptionTrials
    baseline: str
    found: list[tuple[Sentences, CaptionTrial, CaptionTrial]] = field(default_factory=list)
    clusters: list[ClusterRecord] = field(default_factory=list)
    left_out: dict[str, None] = field(default_factory=dict)
    unclaimed: dict[str, str] = field(default_factory=dict)

    @property
    def refinement(self) -> Refinement:
        own = frozenset(content_words(noun_of(self.request.class_name)))
        return Refinement(
            trials=self.trials,
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
        trials = self.trials.try_captions(pairs, step="user") if pairs else ()
        self.found += [
            (said, trial, trial)
            for said, trial in zip(wanted, trials, strict=True)
            if trial.is_proven
        ]

    def try_clusters(self) -> None:
        """Caption the baseline's failures cluster by cluster, and shorten what is proven."""
        failures = self.trials.failures_of_baseline()
        keys, labels = [one.key for one in failures], [one.label for one in failures]
        clusters = failure_clusters(
            keys,
            labels,
            self.sampler.embeddings(keys),
            most_clusters=self.request.settings.most_clusters,
        )
        has_groups = any(len(members) >= SMALLEST for _, members in clusters)
        writer = CaptionWriter(
            sampler=self.sampler,
            baseline=self.baseline,
            right_keys=self._right_keys(),
            avoided=tuple(sorted(set(labels) - {self.request.class_name})),
            most_sentences=self.request.settings.most_sentences,
        )
        for label, members in clusters:
            if len(members) >= SMALLEST or not has_groups:
                caption, note = self._try_cluster(members, writer)
                self.clusters.append(
                    ClusterRecord(
                        predicted=label,
                        size=len(members),
                        example_keys=members[:N_EXAMPLES],
                        caption=caption,
                        note=note,
                    )
                )

    def _right_keys(self) -> tuple[str, ...]:
        n_asked = self.trials.baseline_trial.n_asked
        draws = self.sampler.generate(self.baseline, self.request.class_name, first=0, n=n_asked)
        code = self.sampler.class_names.index(self.request.class_name)
        is_right = np.argmax(draws.probabilities, axis=1) == code
        return tuple(key for key, right in zip(draws.keys, is_right, strict=True) if right)

    def _try_cluster(self, keys: Sequence[str], writer: CaptionWriter) -> tuple[str, str]:
        members = self._unexplained(keys, writer)
        if len(members) < min(SMALLEST, len(keys)):
            return "", "what was found before explains it"
        failures = [one.key for one in self.trials.failures_of_baseline()]
        sentences, left_out = writer.caption(members, self._unexplained(failures, writer))
        self.left_out.update(dict.fromkeys(left_out))
        if not sentences:
            return "", "nothing sets it apart from images that are right"
        refinement = self.refinement
        whole = refinement.tried(sentences, step="cluster")
        self._keep_if_proven(sentences, whole)
        if whole.stopped_because is StoppedBecause.REFUSED and len(sentences) > 1:
            for sentence in sentences:
                self._keep_if_proven((sentence,), refinement.tried((sentence,), step="sentence"))
        return caption_of(sentences), "" if whole.can_be_generated else whole.note

    def _keep_if_proven(self, sentences: Sentences, trial: CaptionTrial) -> None:
        if trial.is_proven:
            self.found.append((*self.refinement.shortest(sentences, trial), trial))

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
        for one in list(self.found):
            control = self.sampler.control_for(one[1].prompt)
            if not control or control in one[1].caption:
                continue
            trial = self.refinement.tried((f"{control}.",), step="control")
            change = trial.rate.value - self.trials.baseline_trial.rate.value
            if trial.is_proven or not trial.can_be_generated or change > MAX_CONTROL:
                self.found.remove(one)
                self.unclaimed[one[1].caption] = (
                    f"No claim of “{one[1].caption}”: the control “{control}” alone changes failures by {100 * change:+.0f} points "
                    f"on {trial.n_images} images, more than {100 * MAX_CONTROL:.0f} or beyond chance."
                )

    @property
    def _suspicions(self) -> tuple[CaptionTrial, ...]:
        """Return what fails more often by as much as matters and ran out of objects before that was proven, most often first."""
        least = self.request.settings.smallest_gain
        suspicious = [
            trial
            for trial in self.trials.trials
            if trial.n_views and not trial.is_proven and trial.step != "control"
            if trial.difference is not None and (trial.difference.value or 0.0) >= least
        ]
        return tuple(sorted(suspicious, key=lambda trial: -trial.rate.value))[:MAX_SUSPICIONS]

    def _unexplained(self, keys: Sequence[str], writer: CaptionWriter) -> list[str]:
        """Return the images whose own captions say nothing that was found already."""
        if not self.found:
            return list(keys)
        own = zip(keys, writer.said(keys), strict=True)
        return [key for key, text in own if not any(_says(text, said) for said, _, _ in self.found)]

    def result(self) -> ClassSearch:
        failures = self.trials.failures_of_baseline()
        trials = self.trials.trials
        return ClassSearch(
            class_name=self.request.class_name,
            target=self.request.target,
            criterion=describe_criterion(self._counted),
            baseline=self.trials.baseline_trial,
            trials=trials,
            findings=self._findings(trials),
            clusters=tuple(self.clusters),
            example_keys=_keys(failures),
            caption_source=self.sampler.caption_source,
            notes=self._notes(trials),
            n_images=self.trials.n_asked,
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
                example_keys=_keys(self.trials.failed_images(trial)),
            )
            for trial in self.trials.proven_among([now[prompt] for prompt in chosen])
        ]
        return tuple(sorted(found, key=lambda finding: -finding.trial.rate.value))

    def _notes(self, trials: Sequence[CaptionTrial]) -> tuple[str, ...]:
        baseline = self.trials.baseline_trial
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
            f"{baseline.n_images}; there are no more. Ask your own images: weakspot ask, or --prove."
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
        if self.trials.is_spent:
            notes.append("The budget is used up; with a larger one, more could be found.")
        return tuple(notes)


def _keys(failures: Sequence[JudgedImage]) -> tuple[str, ...]:
    return tuple(image.key for image in failures[:N_EXAMPLES])


def _says(text: str, sentences: Sequence[str]) -> bool:
    own = [set(said_words(sentence)) for sentence in sentences_of(text)]
    return all(any(set(said_words(sentence)) <= words for words in own) for sentence in sentences)
