"""Data sets whose failures have a known cause: clustered embeddings, correlated columns, and answers that follow from the cause.

Nothing is shared with `weakspot.testing`. A sample is its class centre, a sub-cluster, three nuisance attributes that are unevenly
spread over classes, perhaps the *kind* (an attribute with its own direction, which is what the failures are about), and noise. Class 0
has the slice; class 1 is its rival.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.dataset import Dataset, Split, dataset_from_columns
from weakspot.core.evidence import Cause
from weakspot.core.samples import EmbeddingSpace, SampleSet

CLASSES = ("maple", "birch", "alder", "rowan", "hazel")
ENCODER = "cause-worlds"
SPACE, SECOND = "clip", "second"
WIDTH = 32
OWN, RIVAL = 0, 1


@dataclass(eq=False)
class Plan:
    """What is drawn of a world before its samples are.

    Args:
        draws: the generator of the world.
        kind_training: share of the kind among training samples of every class [c].
        kind_evaluation: the same in evaluation.
        kind_fails: failure rate of the kind in every class [c].
        rest_fails: failure rate of the rest [c].
        goes_to: class that failures of the kind become, -1 for any.
        centres: [c, d].
        kind: [d], what the kind adds.
        mislabelled: share, among samples of the kind of class 0, of those that are really of class 1, in training and evaluation.
        noise: share of all labels that are drawn anew, in training and evaluation.
        closeness: distance of class 1 from class 0, None for as far as any other; -1 for near only where the kind is.
        proxy: chance that the column `proxy` repeats the kind; in class 1 it is mostly set.
    """

    draws: np.random.Generator
    kind_training: np.ndarray
    kind_evaluation: np.ndarray
    kind_fails: np.ndarray
    rest_fails: np.ndarray
    centres: np.ndarray
    kind: np.ndarray
    goes_to: int = -1
    mislabelled: tuple[float, float] = (0.0, 0.0)
    noise: tuple[float, float] = (0.0, 0.0)
    closeness: float | None = None
    is_close_in_kind: bool = False
    proxy: float = 0.0
    has_cue: bool = False
    nuisances: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)


def _unit(draws: np.random.Generator, n_rows: int) -> np.ndarray:
    found = draws.standard_normal((n_rows, WIDTH))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def plan_of(draws: np.random.Generator) -> Plan:
    """Return a world in which a kind is common and of no consequence."""
    n_classes = len(CLASSES)
    shares = draws.uniform(0.1, 0.4, n_classes)
    nuisances = [
        (direction * draws.uniform(1.5, 3.0), draws.uniform(0.1, 0.9, n_classes))
        for direction in _unit(draws, 3)
    ]
    return Plan(
        draws=draws,
        kind_training=shares,
        kind_evaluation=shares.copy(),
        kind_fails=np.full(n_classes, 0.08),
        rest_fails=np.full(n_classes, 0.08),
        centres=_unit(draws, n_classes) * draws.uniform(2.8, 5.0),
        kind=_unit(draws, 1)[0] * draws.uniform(2.5, 4.0),
        nuisances=nuisances,
    )


def rare(plan: Plan) -> None:
    """The kind makes up 1 to 3.5 % of the class in training and far more in evaluation."""
    plan.kind_training[OWN] = plan.draws.uniform(0.01, 0.035)
    plan.kind_evaluation[OWN] = plan.draws.uniform(0.2, 0.3)
    _fail(plan)


def shift(plan: Plan) -> None:
    """The kind is not rare in training, and several times as common in evaluation."""
    plan.kind_training[OWN] = plan.draws.uniform(0.08, 0.14)
    plan.kind_evaluation[OWN] = plan.draws.uniform(0.35, 0.5)
    _fail(plan)


def hard(plan: Plan) -> None:
    """The kind is as common in training as in evaluation, is on no class in particular, and fails."""
    share = plan.draws.uniform(0.2, 0.35)
    plan.kind_training[OWN], plan.kind_evaluation[OWN] = share, share
    if plan.draws.random() < 0.5:
        plan.kind_fails[RIVAL:] = plan.draws.uniform(0.1, 0.5, len(CLASSES) - 1)
    _fail(plan)


def _fail(plan: Plan) -> None:
    plan.kind_fails[OWN] = plan.draws.uniform(0.5, 0.75)
    plan.goes_to = int(plan.draws.choice([-1, RIVAL]))


def spurious(plan: Plan) -> None:
    """The kind belongs to class 1 in training; whatever carries it is drawn there, and class 1 without it fails."""
    draws = plan.draws
    plan.kind_training[:2] = draws.uniform(0.02, 0.08), draws.uniform(0.85, 0.97)
    plan.kind_evaluation[:2] = draws.uniform(0.25, 0.4), draws.uniform(0.5, 0.9)
    plan.kind_fails[:2] = draws.uniform(0.5, 0.75), 0.05
    plan.kind_fails[2:] = draws.uniform(0.25, 0.5)
    plan.rest_fails[RIVAL] = draws.uniform(0.3, 0.6)
    plan.goes_to, plan.has_cue = RIVAL, True


def spurious_table(plan: Plan) -> None:
    """The same where evaluation has the association, too."""
    spurious(plan)
    plan.kind_evaluation[:2] = plan.draws.uniform(0.1, 0.2), plan.draws.uniform(0.7, 0.9)


def wrong_labels(plan: Plan) -> None:
    """Half of the kind and more is of class 1 and labelled otherwise: in evaluation only, or in training, too."""
    share = plan.draws.uniform(0.2, 0.35)
    plan.kind_training[OWN], plan.kind_evaluation[OWN] = share, share
    wrong = plan.draws.uniform(0.5, 0.75)
    plan.mislabelled = (float(plan.draws.choice([0.0, 0.5 * wrong])), wrong)


def look_alike(plan: Plan) -> None:
    """Classes 0 and 1 overlap everywhere."""
    plan.closeness = plan.draws.uniform(0.8, 2.0)


def look_alike_kind(plan: Plan) -> None:
    """Classes 0 and 1 overlap where the kind is, and nowhere else."""
    share = plan.draws.uniform(0.25, 0.35)
    plan.kind_training[:2], plan.kind_evaluation[:2] = share, share
    plan.closeness, plan.is_close_in_kind = plan.draws.uniform(0.5, 1.5), True


def even_noise(plan: Plan) -> None:
    """8 to 12 % of all labels are wrong, in training and evaluation alike."""
    plan.noise = (plan.draws.uniform(0.08, 0.12),) * 2


def hard_and_noise(plan: Plan) -> None:
    hard(plan)
    plan.noise = (plan.draws.uniform(0.05, 0.1),) * 2


def proxies(plan: Plan) -> None:
    """The kind is hard; a column that mostly repeats it is far more common in class 1, which has nothing to do with it."""
    hard(plan)
    plan.proxy = 0.9


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table of causes.

    Args:
        name: as printed.
        change: what makes the world.
        truth: the cause.
        rule: `column` for the true attribute, `proxy` for the column beside it, `linear` for what directions finds.
        has_probabilities: or predictions only.
        has_training: or evaluation rows alone.
        has_second: whether there is a second encoder.
        classes: whose slices are looked at.
    """

    name: str
    change: Callable[[Plan], None]
    truth: Cause
    rule: str = "column"
    has_probabilities: bool = True
    has_training: bool = True
    has_second: bool = False
    classes: tuple[int, ...] = (OWN,)


def world(row: Row, seed: int, *, n_each: int = 300) -> tuple[SampleSet, SampleSet]:
    """Return training and evaluation samples, of every class so many."""
    draws = np.random.default_rng([seed, *row.name.encode()])
    plan = plan_of(draws)
    row.change(plan)
    parts = [_part(plan, is_training=is_training, n_each=n_each) for is_training in (True, False)]
    if not row.has_training:
        parts = parts[1:]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    n_evaluation = len(parts[-1]["labels"])
    n_training = len(columns["labels"]) - n_evaluation
    dataset = _dataset(columns, n_training, n_evaluation, has_probabilities=row.has_probabilities)
    cone = 12.0 * _unit(draws, 1)
    spaces = {SPACE: EmbeddingSpace(encoder_id=ENCODER, embeddings=_floats(columns["z"] + cone))}
    if row.has_second:
        turned = columns["z"] @ np.linalg.qr(draws.standard_normal((WIDTH, WIDTH)))[0]
        other = turned + 0.7 * draws.standard_normal(turned.shape)
        spaces[SECOND] = EmbeddingSpace(encoder_id="another", embeddings=_floats(other + cone))
    training = SampleSet(
        dataset=dataset, rows=np.arange(n_training), spaces=spaces, name="training samples"
    )
    rows = np.arange(n_training, n_training + n_evaluation)
    evaluation = SampleSet(
        dataset=dataset,
        rows=rows,
        spaces=spaces,
        name="validation",
        reference_rows=training.rows if n_training else None,
    )
    return training, evaluation


def _floats(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)


def _dataset(
    columns: dict[str, np.ndarray], n_training: int, n_evaluation: int, *, has_probabilities: bool
) -> Dataset:
    return dataset_from_columns(
        class_names=CLASSES,
        labels=columns["labels"],
        splits=[Split.TRAIN.value] * n_training + [Split.VALIDATION.value] * n_evaluation,
        metadata={
            name: columns[name].astype(int).tolist()
            for name in ("kind", "proxy", "first", "second", "third")
        },
        predictions=None if has_probabilities else columns["answers"],
        probabilities=_floats(columns["probabilities"]) if has_probabilities else None,
    )


def _part(plan: Plan, *, is_training: bool, n_each: int) -> dict[str, np.ndarray]:
    draws, n_classes = plan.draws, len(CLASSES)
    labels = np.repeat(np.arange(n_classes), n_each)
    shares = plan.kind_training if is_training else plan.kind_evaluation
    is_kind = draws.random(len(labels)) < shares[labels]
    truth = labels.copy()
    wrong = plan.mislabelled[0 if is_training else 1]
    truth[(labels == OWN) & is_kind & (draws.random(len(labels)) < wrong)] = RIVAL
    z, flags = _looks(plan, truth, is_kind)
    answers = _answers(plan, truth, is_kind, z)
    noise = plan.noise[0 if is_training else 1]
    is_noise = draws.random(len(labels)) < noise
    labels = np.where(
        is_noise, (labels + draws.integers(1, n_classes, len(labels))) % n_classes, labels
    )
    repeats = draws.random(len(labels)) < plan.proxy
    mostly = np.where(labels == RIVAL, 0.85, 0.1)
    proxy = np.where(repeats & (labels != RIVAL), is_kind, draws.random(len(labels)) < mostly)
    return {
        "labels": labels,
        "kind": is_kind,
        "proxy": proxy,
        **dict(zip(("first", "second", "third"), flags, strict=True)),
        "z": z,
        "answers": answers,
        "probabilities": _probabilities(draws, answers),
    }


def _looks(plan: Plan, truth: np.ndarray, is_kind: np.ndarray) -> tuple[np.ndarray, list]:
    draws, centres = plan.draws, plan.centres.copy()
    if plan.closeness is not None and not plan.is_close_in_kind:
        centres[RIVAL] = centres[OWN] + plan.closeness * plan.kind / np.linalg.norm(plan.kind)
    z = centres[truth] + is_kind[:, None] * plan.kind
    if plan.is_close_in_kind:
        # Where the kind is, both classes lie beside the middle of their centres.
        middle = (centres[OWN] + centres[RIVAL]) / 2 + plan.kind
        apart = centres[RIVAL] - centres[OWN]
        apart *= plan.closeness / np.linalg.norm(apart)
        for code, side in ((OWN, -0.5), (RIVAL, 0.5)):
            z[(truth == code) & is_kind] = middle + side * apart
    flags = []
    for direction, shares in plan.nuisances:
        flags.append(draws.random(len(truth)) < shares[truth])
        z = z + flags[-1][:, None] * direction
    # Sub-clusters are the classes' own, so they must be the same in training and evaluation.
    own = np.random.default_rng(int(abs(plan.centres[0, 0]) * 1e9))
    corners = own.standard_normal((len(CLASSES), 3, WIDTH)) * 0.25
    if plan.closeness is not None:
        corners[RIVAL] = corners[OWN]
    z = z + corners[truth, draws.integers(0, 3, len(truth))]
    return z + draws.standard_normal(z.shape), flags


def _answers(plan: Plan, truth: np.ndarray, is_kind: np.ndarray, z: np.ndarray) -> np.ndarray:
    draws, n_classes = plan.draws, len(CLASSES)
    rates = np.where(is_kind, plan.kind_fails[truth], plan.rest_fails[truth])
    fails = draws.random(len(truth)) < rates
    distances = np.square(z[:, None] - plan.centres[None]).sum(axis=2) / 10.0
    chances = np.exp(distances.min(axis=1, keepdims=True) - distances)
    chances[np.arange(len(truth)), truth] = 0.0
    chances += 1e-9
    chances[np.arange(len(truth)), truth] = 0.0
    heaps = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    other = np.minimum((draws.random((len(truth), 1)) > heaps).sum(axis=1), n_classes - 1)
    if plan.goes_to >= 0:
        is_drawn = is_kind & (truth != plan.goes_to) & (draws.random(len(truth)) < 0.9)
        if not plan.has_cue:
            is_drawn &= truth == OWN
        other = np.where(is_drawn, plan.goes_to, other)
    answers = np.where(fails, other, truth)
    if plan.closeness is not None:
        answers = _unsure_answers(plan, truth, is_kind, z, answers)
    return answers


def _unsure_answers(
    plan: Plan, truth: np.ndarray, is_kind: np.ndarray, z: np.ndarray, answers: np.ndarray
) -> np.ndarray:
    """Where classes 0 and 1 overlap, answers follow the side of the boundary, seen through noise of the classifier's own."""
    unsure = (truth <= RIVAL) & (is_kind | (not plan.is_close_in_kind)) & (answers <= RIVAL)
    axis = plan.centres[RIVAL] - plan.centres[OWN] if plan.is_close_in_kind else plan.kind
    along = z @ (axis / np.linalg.norm(axis))
    middle = np.mean([along[unsure & (truth == code)].mean() for code in (OWN, RIVAL)])
    along = along + 0.5 * plan.draws.standard_normal(len(along))
    return np.where(unsure, np.where(along > middle, RIVAL, OWN), answers)


def _probabilities(draws: np.random.Generator, answers: np.ndarray) -> np.ndarray:
    """Return probabilities whose largest is the answer, more and less sure of it."""
    n_classes = len(CLASSES)
    rest = draws.dirichlet(np.ones(n_classes), len(answers))
    sure = draws.beta(4.0, 1.5, len(answers))[:, None]
    said = np.eye(n_classes)[answers]
    mixed = sure * said + (1 - sure) * rest
    top = mixed.max(axis=1, keepdims=True)
    return np.where(said > 0, top + 1e-3, mixed) / (np.where(said > 0, top + 1e-3, mixed)).sum(
        axis=1, keepdims=True
    )


ROWS: tuple[Row, ...] = (
    Row(name="rare in training", change=rare, truth=Cause.RARE),
    Row(name="rare in training, linear", change=rare, truth=Cause.RARE, rule="linear"),
    Row(name="more common", change=shift, truth=Cause.SHIFT),
    Row(name="more common, linear", change=shift, truth=Cause.SHIFT, rule="linear"),
    Row(name="spurious cue", change=spurious, truth=Cause.SPURIOUS),
    Row(name="spurious cue, linear", change=spurious, truth=Cause.SPURIOUS, rule="linear"),
    Row(name="wrong labels", change=wrong_labels, truth=Cause.LABELS),
    Row(name="wrong labels, linear", change=wrong_labels, truth=Cause.LABELS, rule="linear"),
    Row(name="wrong labels, predictions only", change=wrong_labels, truth=Cause.LABELS,
        has_probabilities=False),
    Row(name="wrong labels, predictions only, second encoder", change=wrong_labels,
        truth=Cause.LABELS, has_probabilities=False, has_second=True),
    Row(name="even noise, linear", change=even_noise, truth=Cause.LABELS, rule="linear",
        classes=(0, 1, 2, 3, 4)),
    Row(name="hard, no cue", change=hard, truth=Cause.HARD),
    Row(name="hard, no cue, linear", change=hard, truth=Cause.HARD, rule="linear"),
    Row(name="hard, even noise", change=hard_and_noise, truth=Cause.HARD),
    Row(name="hard, proxy of a class", change=proxies, truth=Cause.HARD, rule="proxy"),
    Row(name="look-alike, linear", change=look_alike, truth=Cause.CONFUSABLE, rule="linear",
        classes=(0, 1)),
    Row(name="look-alike, linear, predictions only", change=look_alike, truth=Cause.CONFUSABLE,
        rule="linear", has_probabilities=False, classes=(0, 1)),
    Row(name="look-alike where the kind is", change=look_alike_kind, truth=Cause.CONFUSABLE,
        classes=(0, 1)),
    Row(name="look-alike where the kind is, linear", change=look_alike_kind,
        truth=Cause.CONFUSABLE, rule="linear", classes=(0, 1)),
    Row(name="validation only, spurious", change=spurious_table, truth=Cause.SPURIOUS,
        has_training=False),
    Row(name="validation only, hard", change=hard, truth=Cause.HARD, has_training=False),
    Row(name="validation only, proxy of a class", change=proxies, truth=Cause.HARD, rule="proxy",
        has_training=False),
    Row(name="validation only, wrong labels", change=wrong_labels, truth=Cause.LABELS,
        has_training=False),
)  # fmt: skip
