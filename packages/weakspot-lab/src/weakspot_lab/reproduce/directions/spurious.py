"""Spurious correlation (CelebA in the paper): who is flagged, by what, and what retraining does about it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.repair.training.trainer import HeadTrainer
from weakspot_lab.reproduce.directions.case import TEST, TRAIN, Case, predicted
from weakspot_lab.reproduce.directions.probing import (
    PAPER_DOMINO,
    Probe,
    doubts,
    minority_shares,
    nearest_rows,
    probe,
)
from weakspot_lab.reproduce.directions.scenes import (
    CLASSES,
    PLACES,
    SceneSizes,
    candidate_captions,
    images_of_caption,
    reference_caption,
    scene_case,
)
from weakspot_lab.reproduce.protocol import Context, StepResult
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.small_networks import NetworkPlan, SmallNetwork, train_network

RATIO = 4.0
"""Majority samples for each minority sample in training, as in the paper."""
RATIOS = (1.0, 2.0, 4.0, 8.0)
DOUBLE = 2.0
ARMS = ("hard", "neutral", "easy")
FLAGGED = "svm"


def sizes_of(request: ReproduceRequest) -> SceneSizes:
    return request.pick(SceneSizes(), SceneSizes(train=150, validation=80, test=60))


def plan_of(request: ReproduceRequest, seed: int, **changes: object) -> NetworkPlan:
    settings = {"width": 8, "n_epochs": request.pick(15, 4), "seed": seed, **changes}
    return NetworkPlan(**settings)  # type: ignore[arg-type]


def measure_spurious(context: Context, number: int) -> StepResult:
    """Measure one world: orders of test samples, captions, reweighting, and generated images."""
    request = context.request
    seed = context.seed_of("spurious", str(number))
    case = scene_case(RATIO, sizes_of(request), seed=seed)
    plan = plan_of(request, seed)
    result, base, found = measure_orders(case, plan, request)
    result["captions"] = _captions(case, found, base, request)
    result["synthetic"] = _synthetic(case, found, base, plan, request)
    return result


def measure_orders(
    case: Case, plan: NetworkPlan, request: ReproduceRequest
) -> tuple[StepResult, SmallNetwork, Probe]:
    """Measure who comes first by the SVM and by what it is compared with, and reweighting; also the network and its directions."""
    early = max(1, plan.n_epochs // 3)
    base = case.train(plan, keep_epochs=(early,))
    biased = case.train(replace(plan, loss="generalised"))
    probabilities = base.probabilities(case.inputs)
    found = probe(case, probabilities, seed=plan.seed)
    test = case.rows(TEST)
    networks = {"confidence": base, "early stopping": base.kept[early], "LfF": biased}
    domino = probe(case, probabilities, seed=plan.seed, discoverer=PAPER_DOMINO)
    orders = {
        FLAGGED: found.scores(test),
        **{name: doubts_of(one, case, test) for name, one in networks.items()},
        "Domino": domino.scores(test),
    }
    flagged = found.flagged(test)
    result: StepResult = {
        "minority in test": float(case.is_minority[test].mean()),
        "minority among flagged": _share(case.is_minority[test], flagged),
        "flagged": float(flagged.mean()),
        "minority among errors": _share(
            case.is_minority[test], probabilities[test].argmax(axis=1) != case.labels[test]
        ),
        "accuracy": case.accuracy(base, test),
        "minority accuracy": case.minority_accuracy(base),
        "early minority accuracy": case.minority_accuracy(base.kept[early]),
        "biased minority accuracy": case.minority_accuracy(biased),
        "counts": list(counts_of(request)),
        "orders": {
            name: list(minority_shares(case, one, test, counts_of(request)))
            for name, one in orders.items()
        },
        "strength": found.mean_strength,
        "upweight": _upweight(case, found, plan),
    }
    return result, base, found


def counts_of(request: ReproduceRequest) -> tuple[int, ...]:
    return request.pick((10, 25, 50, 100, 150), (5, 10))


def doubts_of(network: SmallNetwork, case: Case, rows: IntArray) -> DoubleArray:
    return doubts(network.probabilities(case.inputs[rows]), case.labels[rows])


def _share(chosen: AnyArray, among: AnyArray) -> float | None:
    return float(chosen[among].mean()) if among.any() else None


def _upweight(case: Case, found: Probe, plan: NetworkPlan) -> StepResult:
    """Retrain from scratch with flagged training samples, or those of the minority, counted twice."""
    train = case.rows(TRAIN)
    weights = {
        "svm": np.where(found.flagged(train), DOUBLE, 1.0),
        "oracle": np.where(case.is_minority[train], DOUBLE, 1.0),
    }
    return {
        name: case.minority_accuracy(case.train(plan, weights=one)) for name, one in weights.items()
    }


def _captions(
    case: Case, found: Probe, base: SmallNetwork, request: ReproduceRequest
) -> StepResult:
    """Return whether hard captions name the place, and accuracies near hard and easy captions, also of another network."""
    other = case.train(plan_of(request, request.seed + 1, width=12))
    test, count = case.rows(TEST), counts_of(request)[-1]
    named, near = [], {"hard": [], "easy": [], "other hard": [], "other easy": []}  # type: ignore[var-annotated]
    for code, extremes in _extremes(found).items():
        named.append(float(PLACES[1 - code] in extremes["hard"].split()))
        own = test[case.labels[test] == code]
        for name in ("hard", "easy"):
            rows = nearest_rows(case, extremes[name], own, count)
            near[name].append(case.accuracy(base, rows))
            near[f"other {name}"].append(case.accuracy(other, rows))
    return {
        "named": float(np.mean(named)) if named else None,
        "near": {name: float(np.mean(one)) if one else None for name, one in near.items()},
        "hardest": [extremes["hard"] for extremes in _extremes(found).values()],
    }


def _extremes(found: Probe) -> dict[int, dict[str, str]]:
    """Return the hard, the neutral and the easy caption of every class."""
    listed = {}
    for code in sorted(found.slices):
        name = CLASSES[code]
        ordered = found.captions(code, candidate_captions(name), reference_caption(name))
        listed[code] = {
            "hard": ordered[0],
            "neutral": reference_caption(name),
            "easy": ordered[-1],
        }
    return listed


def _synthetic(
    case: Case,
    found: Probe,
    base: SmallNetwork,
    plan: NetworkPlan,
    request: ReproduceRequest,
) -> StepResult:
    """Add generated images of the hard, the neutral or the easy caption; retrain the last layer, and the whole network."""
    extremes, test = _extremes(found), case.rows(TEST)
    near = {
        name: np.concatenate(
            [
                nearest_rows(
                    case, one[name], test[case.labels[test] == code], counts_of(request)[-1]
                )
                for code, one in extremes.items()
            ]
        )
        for name in ("hard", "easy")
        if extremes
    }
    if not near:
        return {}
    result: StepResult = {
        "original": {"overall": case.accuracy(base, test)}
        | {name: case.accuracy(base, rows) for name, rows in near.items()}
    }
    train = case.rows(TRAIN)
    for arm in ARMS:
        images, labels = _generated(extremes, arm, request, plan.seed)
        inputs = np.concatenate([case.inputs[train], images])
        every = np.concatenate([case.labels[train], labels])
        head = _retrained_head(base, inputs, every, len(case.class_names))
        whole = train_network(inputs, every, n_classes=len(case.class_names), plan=plan)
        result[arm] = {
            "accuracy on generated": float(np.mean(predicted(base, images) == labels)),
            "head": _accuracies(head, case, test, near),
            "scratch": _accuracies(whole, case, test, near),
        }
    return result


def _generated(
    extremes: Mapping[int, Mapping[str, str]], arm: str, request: ReproduceRequest, seed: int
) -> tuple[AnyArray, IntArray]:
    count = request.pick(100, 20)
    made = [
        images_of_caption(one[arm], CLASSES[code], count, seed=seed)[0]
        for code, one in extremes.items()
    ]
    return np.concatenate(made), np.repeat(np.array(list(extremes), dtype=np.int64), count)


def _retrained_head(
    base: SmallNetwork, inputs: AnyArray, labels: IntArray, n_classes: int
) -> SmallNetwork:
    """Return the network with its last layer trained anew on all images."""
    features: FloatArray = base.features(inputs)
    trained = HeadTrainer(penalty=1e-3).train(
        features, labels, np.ones(len(labels)), task=Task.SINGLE_LABEL, n_classes=n_classes
    )
    return SmallNetwork(body=base.body, head=trained.head)


def _accuracies(
    network: SmallNetwork, case: Case, test: IntArray, near: Mapping[str, IntArray]
) -> StepResult:
    return {"overall": case.accuracy(network, test)} | {
        name: case.accuracy(network, rows) for name, rows in near.items()
    }


def measure_strength(context: Context, ratio: float) -> StepResult:
    """Measure the strength of the direction at one strength of the planted shift, and what the shift costs."""
    n_worlds = context.request.pick(2, 1)
    found = []
    for number in range(n_worlds):
        seed = context.seed_of("strength", str(number))
        case = scene_case(ratio, sizes_of(context.request), seed=seed)
        network = case.train(plan_of(context.request, seed))
        direction = probe(case, network.probabilities(case.inputs), seed=seed)
        found.append((direction.mean_strength, case.minority_accuracy(network)))
    return {
        "ratio": ratio,
        "strength": [one for one, _ in found],
        "minority accuracy": [one for _, one in found],
    }
