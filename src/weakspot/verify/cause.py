"""Why a confirmed slice fails and what its samples are taken for, as far as training data and wrong answers tell."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Cause, CauseFinding, Evidence, Pull, Share, SliceSides, Verdict, sides_of
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems, predicted_classes
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import fisher_p

MOST = 0.5
CHUNK_ROWS = 65_536


@dataclass(frozen=True, kw_only=True)
class CauseFinder:
    """Weighs four explanations by figures, in this order: spurious cue, rare, more common than in training, hard.

    Args:
        rare_share: rare if members make up less than this share of the class's training samples,
        rare_count: or if there are fewer of them and their share is below `shift_ratio` times that in evaluation.
        shift_ratio: more common than in training if the share in training is below this part of the share in evaluation.
        cue_share: a cue is spurious if samples that carry it are at least this share of another class in training,
        cue_ratio: at least so many times their share in the true class, and members are taken for that class more often than the
            rest.
        min_training: least number of training samples of a class for its shares to count.
        largest_p: differences of shares with a larger p-value may be chance and are not called a cause.
        level: of the intervals.
    """

    rare_share: float = 0.05
    rare_count: int = 10
    shift_ratio: float = 0.5
    cue_share: float = 0.5
    cue_ratio: float = 3.0
    min_training: int = 10
    largest_p: float = 0.05
    level: float = 0.95

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        for name in ("rare_share", "shift_ratio", "cue_share", "largest_p"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"The setting {name} must lie between 0 and 1.", given=getattr(self, name))

    def explain(
        self,
        slices: Sequence[FailureSlice],
        evidence: Sequence[Evidence],
        *,
        training: SampleSet,
        evaluation: SampleSet,
        criterion: FailureCriterion,
    ) -> tuple[Evidence, ...]:
        """Return the same evidence, in the same order, with a cause for every confirmed slice."""
        by_id = {found.slice_id: found for found in slices}
        wanted = {entry.slice_id for entry in evidence if entry.verdict is Verdict.CONFIRMED} & by_id.keys()
        problems = class_problems(evaluation.dataset, evaluation.rows, criterion) if wanted else ()
        causes = {name: self._cause(by_id[name], training, evaluation, problems) for name in wanted}
        return tuple(
            entry.model_copy(update={"cause": causes[entry.slice_id]})
            if entry.verdict is Verdict.CONFIRMED and entry.slice_id in causes
            else entry
            for entry in evidence
        )

    def cause(self, found: FailureSlice, training: SampleSet, evaluation: SampleSet, criterion: FailureCriterion) -> CauseFinding:
        """Return the probable cause of one slice."""
        return self._cause(found, training, evaluation, class_problems(evaluation.dataset, evaluation.rows, criterion))

    def _cause(
        self, found: FailureSlice, training: SampleSet, evaluation: SampleSet, problems: Sequence[ClassProblem]
    ) -> CauseFinding:
        sides = sides_of(found, evaluation, problems)
        own = self._share(found, training, found.class_rows(training))
        here = self._share(found, evaluation, found.class_rows(evaluation), least=1)
        pull = self._pull(found, evaluation.dataset, sides)
        cue = None if own is None else self._cue(found, training, evaluation.dataset, sides, own)
        rival, in_rival = cue if cue is not None else self._answer_share(found, training, pull)
        return CauseFinding(
            cause=self._weigh(own, here, has_cue=cue is not None),
            share_training=None if own is None else own.value,
            share_evaluation=None if here is None else here.value,
            dominant_prediction=None if pull is None else pull.answer,
            dominant_share=None if pull is None else pull.among_failures.value,
            sentence=_sentence(found, own, here, rival, in_rival),
            in_training=own,
            in_evaluation=here,
            rival=rival,
            in_rival=in_rival,
            pull=pull,
        )

    def _weigh(self, own: Share | None, here: Share | None, *, has_cue: bool) -> Cause:
        if own is None or here is None:
            return Cause.UNKNOWN
        if has_cue:
            return Cause.SPURIOUS
        is_less = own.value < self.shift_ratio * here.value
        if own.value < self.rare_share or (own.count < self.rare_count and is_less):
            return Cause.RARE
        return Cause.SHIFT if is_less and self._is_larger(here, own) else Cause.HARD

    def _cue(
        self, found: FailureSlice, training: SampleSet, dataset: Dataset, sides: SliceSides, own: Share
    ) -> tuple[str, Share] | None:
        """Return the class that the look of the slice belongs to in training, if members are pulled to it.

        The class is chosen by training samples alone, so one test of the pull is enough.
        """
        if dataset.task is not Task.SINGLE_LABEL:
            return self._label_cue(found, training, own)
        shares = self._shares_by_class(found, training)
        shares.pop(found.class_name, None)
        if not shares:
            return None
        rival = max(shares, key=lambda name: (shares[name].value, name))
        share = shares[rival]
        if not self._belongs(share, own):
            return None
        code = dataset.class_code(rival)
        taken, others = _answers(dataset, sides, is_inside=True)[code], _answers(dataset, sides, is_inside=False)[code]
        _, n_inside, _, n_outside = sides.table
        return (rival, share) if fisher_p(taken, n_inside, others, n_outside) <= self.largest_p else None

    def _label_cue(self, found: FailureSlice, training: SampleSet, own: Share) -> tuple[str, Share] | None:
        """Return the label whose samples carry the look, for samples that lack it: a failure there is to be given the label."""
        if found.side is not Side.ABSENT:
            return None
        others = found.model_copy(update={"side": Side.PRESENT})
        share = self._share(found, training, others.class_rows(training))
        return (found.class_name, share) if share is not None and self._belongs(share, own) else None

    def _belongs(self, share: Share, own: Share) -> bool:
        """Return whether a look is so common in another class, and so much more than in its own, that it may pass for its cue."""
        return share.value >= max(self.cue_share, self.cue_ratio * own.value) and self._is_larger(share, own)

    def _shares_by_class(self, found: FailureSlice, training: SampleSet) -> dict[str, Share]:
        """Return the share of members in every class that has enough training samples."""
        dataset = training.dataset
        counts, totals = np.zeros((2, dataset.n_classes), dtype=np.int64)
        labelled = training.rows[dataset.is_labelled[training.rows]]
        for start in range(0, len(labelled), CHUNK_ROWS):
            rows = labelled[start : start + CHUNK_ROWS]
            is_known = np.isfinite(found.rule.scores(training, rows))
            inside = found.rule.members(training, rows) & is_known
            totals += np.bincount(dataset.labels[rows[is_known]], minlength=dataset.n_classes)
            counts += np.bincount(dataset.labels[rows[inside]], minlength=dataset.n_classes)
        return {
            name: Share.of(int(count), int(total), level=self.level)
            for name, count, total in zip(dataset.class_names, counts, totals, strict=True)
            if total >= self.min_training
        }

    def _answer_share(self, found: FailureSlice, training: SampleSet, pull: Pull | None) -> tuple[str | None, Share | None]:
        """Return how common the look is in the class that members are taken for."""
        if pull is None or not pull.is_real:
            return None, None
        dataset = training.dataset
        code = dataset.class_code(pull.answer)
        share = self._share(found, training, training.rows[dataset.labels[training.rows] == code])
        return (None, None) if share is None else (pull.answer, share)

    def _is_larger(self, share: Share, other: Share) -> bool:
        return fisher_p(share.count, share.total, other.count, other.total) <= self.largest_p

    def _share(self, found: FailureSlice, samples: SampleSet, rows: IntArray, *, least: int | None = None) -> Share | None:
        """Return the share of members among rows, None if there are too few to tell."""
        scores = found.rule.scores(samples, rows) if len(rows) else np.zeros(0)
        known = rows[np.isfinite(scores)]
        if len(known) < (self.min_training if least is None else least):
            return None
        return Share.of(int(found.rule.members(samples, known).sum()), len(known), level=self.level)

    def _pull(self, found: FailureSlice, dataset: Dataset, sides: SliceSides) -> Pull | None:
        """Return what failing members are mostly taken for; single-label only."""
        if dataset.task is not Task.SINGLE_LABEL or sides.problem is None:
            return None
        inside, outside = _answers(dataset, sides, is_inside=True), _answers(dataset, sides, is_inside=False)
        wrong = {code: count for code, count in inside.items() if dataset.class_names[code] != found.class_name}
        if not wrong:
            return None
        answer = min(wrong, key=lambda code: (-wrong[code], code))
        _, n_inside, _, n_outside = sides.table
        taken, others = wrong[answer], outside.get(answer, 0)
        p_value = min(1.0, len(wrong) * fisher_p(taken, n_inside, others, n_outside))
        among = Share.of(taken, sum(inside.values()), level=self.level)
        others_among = Share.of(others, sum(outside.values()), level=self.level)
        blank = Pull(
            answer=dataset.class_names[answer],
            inside=Share.of(taken, n_inside, level=self.level),
            outside=Share.of(others, n_outside, level=self.level),
            among_failures=among,
            among_other_failures=others_among,
            p_value=p_value,
            is_real=p_value <= self.largest_p and (among.value > MOST or self._is_larger(among, others_among)),
        )
        return blank.model_copy(update={"sentence": _pull_sentence(found, blank)})


def _answers(dataset: Dataset, sides: SliceSides, *, is_inside: bool) -> Counter[int]:
    """Count what the failures on one side are taken for."""
    problem = sides.problem
    if problem is None:
        return Counter()
    failing = problem.rows[(sides.inside if is_inside else sides.outside) & problem.failed]
    return Counter(predicted_classes(dataset, failing).tolist())


def _class_words(found: FailureSlice) -> str:
    return f"samples without {found.class_name}" if found.side is Side.ABSENT else found.class_name


def _figures(share: Share) -> str:
    """Return a share with what is behind it, for example `10 % (2 of 20, interval 3–30 %)`."""
    return (
        f"{100 * share.value:.0f} % ({share.count} of {share.total}, "
        f"interval {100 * share.interval.low:.0f}–{100 * share.interval.high:.0f} %)"
    )


def _sentence(found: FailureSlice, own: Share | None, here: Share | None, rival: str | None, in_rival: Share | None) -> str:
    parts, class_name = [], _class_words(found)
    if own is not None and here is not None:
        parts.append(f"Such samples make up {_figures(own)} of {class_name} in training and {_figures(here)} in evaluation.")
    elif own is None:
        parts.append(f"Too few training samples of {class_name} with vectors to say how common such samples are there.")
    if rival is not None and in_rival is not None:
        parts.append(f"The same look is found on {_figures(in_rival)} of the training samples of {rival}.")
    return " ".join(parts)


def _pull_sentence(found: FailureSlice, pull: Pull) -> str:
    among, others = pull.among_failures, pull.among_other_failures
    if pull.is_real:
        elsewhere = f", as are {others.count} of the {others.total} failures outside" if others.total else ""
        return (
            f"“{found.title}” become {pull.answer}: {_figures(pull.inside)}, against {_figures(pull.outside)} of the other "
            f"{_class_words(found)} samples. {among.count} of the {among.total} failures inside are taken for "
            f"{pull.answer}{elsewhere}."
        )
    return (
        f"No wrong answer stands out: the most frequent is {pull.answer}, with {among.count} of {among.total} failures inside and "
        f"{others.count} of {others.total} outside."
    )
