"""Underrepresented subclasses (CIFAR-100 in the paper): who is flagged, how they are named, and what added images do."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot_lab.reproduce.directions.case import POOL, TEST, TRAIN, Case, predicted
from weakspot_lab.reproduce.directions.hierarchy import (
    Hierarchy,
    HierarchySizes,
    hierarchy,
)
from weakspot_lab.reproduce.directions.probing import (
    PAPER_DOMINO,
    Probe,
    doubts,
    minority_shares,
    probe,
)
from weakspot_lab.reproduce.protocol import Context, StepResult
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.small_networks import NetworkPlan, SmallNetwork

REMOVED = 0.75
DEGREES = (0.0, 0.25, 0.5, 0.75, 0.9)
TOP_TWO = 2
COUNTS = (5, 10, 20, 40)
BUDGETS = (10, 20, 40)
CHOICES = ("svm", "confidence", "random")


def sizes_of(request: ReproduceRequest) -> HierarchySizes:
    return request.pick(
        HierarchySizes(), HierarchySizes(superclasses=4, train=30, validation=20, test=20)
    )


def plan_of(request: ReproduceRequest, seed: int) -> NetworkPlan:
    return NetworkPlan(
        width=48, n_epochs=request.pick(15, 5), peak_epoch=request.pick(5.0, 2.0), seed=seed
    )


def measure_rare(context: Context, number: int) -> StepResult:
    """Measure one planted world in which a subclass of every superclass lost three quarters of its training samples."""
    seed = context.seed_of("rare", str(number))
    world = hierarchy(sizes_of(context.request), seed=seed)
    return measure_hierarchy(world, plan_of(context.request, seed), context.request)


def measure_hierarchy(world: Hierarchy, plan: NetworkPlan, request: ReproduceRequest) -> StepResult:
    """Measure who is flagged, how they are named, and what added images do, after rare subclasses were made rare."""
    seed = plan.seed
    rare = worst_subclasses(world, world.case.train(plan))
    case = world.rarefied(rare, REMOVED, seed=seed)
    base = case.train(plan)
    probabilities = base.probabilities(case.inputs)
    found = probe(case, probabilities, seed=seed)
    test = case.rows(TEST)
    orders = {
        "svm": found.scores(test),
        "confidence": doubts(probabilities[test], case.labels[test]),
        "Domino": probe(case, probabilities, seed=seed, discoverer=PAPER_DOMINO).scores(test),
    }
    return {
        "counts": list(COUNTS),
        "orders": {
            name: list(minority_shares(case, one, test, COUNTS)) for name, one in orders.items()
        },
        "minority in test": float(case.is_minority[test].mean()),
        "accuracy": case.accuracy(base, test),
        "minority accuracy": case.minority_accuracy(base),
        "captions": list(caption_places(world, found, rare)),
        "filtering": _filtering(case, found, base, plan, request),
        "strengths": [found.strength(code) for code in range(len(case.class_names))],
        "minority among errors": _error_shares(case, base, test),
    }


def worst_subclasses(world: Hierarchy, network: SmallNetwork) -> list[int]:
    """Return the subclass of every superclass that a network trained on everything serves worst, as in the paper."""
    case, test = world.case, world.case.rows(TEST)
    right = predicted(network, case.inputs[test]) == case.labels[test]
    accuracy = np.bincount(world.subclasses[test], weights=right) / np.bincount(
        world.subclasses[test]
    )
    return [
        int(min(world.members(code), key=lambda one: accuracy[one]))
        for code in range(len(case.class_names))
    ]


def caption_places(world: Hierarchy, found: Probe, rare: Sequence[int]) -> list[int]:
    """Return the place of the rare subclass's caption in its superclass, 0 for the hardest; 5 without a direction; none without words."""
    if found.case.embed_texts is None:
        return []
    places = []
    for code, one in enumerate(rare):
        candidates = [world.caption(member) for member in world.members(code)]
        if code not in found.slices:
            places.append(len(candidates))
            continue
        ordered = found.captions(code, candidates, world.class_caption(code))
        places.append(ordered.index(world.caption(one)))
    return places


def _error_shares(case: Case, base: SmallNetwork, test: IntArray) -> list[float | None]:
    """Return the share of the minority among the errors of every class; None without errors."""
    wrong = predicted(base, case.inputs[test]) != case.labels[test]
    found: list[float | None] = []
    for code in range(len(case.class_names)):
        own = wrong & (case.labels[test] == code)
        found.append(float(case.is_minority[test][own].mean()) if own.any() else None)
    return found


def _filtering(
    case: Case, found: Probe, base: SmallNetwork, plan: NetworkPlan, request: ReproduceRequest
) -> StepResult:
    """Add the hardest images of a pool, by direction, by confidence or by lot, and train from scratch."""
    pool, train = case.rows(POOL), case.rows(TRAIN)
    scores: dict[str, DoubleArray] = {
        "svm": found.scores(pool),
        "confidence": doubts(base.probabilities(case.inputs[pool]), case.labels[pool]),
        "random": np.random.default_rng(plan.seed).random(len(pool)),
    }
    result: StepResult = {}
    for budget in request.pick(BUDGETS, BUDGETS[:1]):
        for name in CHOICES:
            added = hardest(case, scores[name], pool, budget)
            network = case.train(plan, rows=np.concatenate([train, added]))
            result[f"{name} {budget}"] = {
                "minority": case.minority_accuracy(network),
                "overall": case.accuracy(network, case.rows(TEST)),
            }
    return result


def hardest(case: Case, scores: DoubleArray, rows: IntArray, count: int) -> IntArray:
    """Return so many rows of every class, hardest first."""
    chosen = []
    for code in range(len(case.class_names)):
        own = np.flatnonzero(case.labels[rows] == code)
        chosen.append(rows[own[np.argsort(-scores[own], kind="stable")[:count]]])
    return np.concatenate(chosen)


def measure_removal(context: Context, removed: float) -> StepResult:
    """Measure strength and minority accuracy when so much of the rare subclasses was removed from training."""
    request = context.request
    strengths, minority = [], []
    for number in range(request.pick(3, 1)):
        seed = context.seed_of("removal", str(number))
        plan = plan_of(request, seed)
        world, rare = context.shared(f"removal {number}", partial(_world, request, seed))
        case = world.rarefied(rare, removed, seed=seed)
        network = case.train(plan)
        found = probe(case, network.probabilities(case.inputs), seed=seed)
        strengths.append(found.mean_strength)
        minority.append(case.minority_accuracy(network))
    return {"removed": removed, "strength": strengths, "minority accuracy": minority}


def _world(request: ReproduceRequest, seed: int) -> tuple[Hierarchy, list[int]]:
    world = hierarchy(sizes_of(request), seed=seed)
    return world, worst_subclasses(world, world.case.train(plan_of(request, seed)))
