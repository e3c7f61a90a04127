"""Which pool images are labelled and added: by the paper's rule, by confirmed slices, and as active learning chooses."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.evidence import Verdict
from weakspot.repair.bench import RepairBench
from weakspot.repair.strategies.pool import apportioned
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.run.settings import DiscoverSettings, RepairSettings, Settings
from weakspot.run.wiring import build_discoverers, build_verifier
from weakspot.verify.screening import screened
from weakspot_lab.reproduce.hibug.combinations import worst_combinations
from weakspot_lab.reproduce.hibug.tasks import Task

BETA = 0.9
HIBUG, CONFIRMED = "hibug", "confirmed"
REFERENCES: Mapping[str, str] = {
    "random": "pool-random",
    "coreset": "pool-coreset",
    "uncertainty": "pool-confidence",
    "margin": "pool-margin",
    "entropy": "pool-entropy",
}
WAYS = (*REFERENCES, HIBUG, CONFIRMED)
METHOD = "attributes"


def chosen_rows(task: Task, way: str, budget: int, *, seed: int) -> tuple[IntArray, str]:
    """Return the pool rows that a way chooses, and a note."""
    if way == HIBUG:
        return by_combinations(task, budget), ""
    bench = _bench(task, budget, seed=seed, with_slices=way == CONFIRMED)
    method, note = REFERENCES.get(way, "pool-budgeted"), ""
    try:
        if way == CONFIRMED and not bench.slices:
            raise NotEnoughDataError("No slice was confirmed.")
        rows = bench.selection(method).rows
    except NotEnoughDataError as error:
        rows, note = bench.selection(REFERENCES["random"]).rows, f"random instead: {error.what}"
    rows = np.intersect1d(rows, task.rows(Split.POOL))
    if len(rows) < budget:
        note = f"{len(rows)} by slices, the rest least sure"
        order = _least_sure(task)
        rows = np.sort(np.concatenate([rows, order[~np.isin(order, rows)][: budget - len(rows)]]))
    return rows, note


def _least_sure(task: Task) -> IntArray:
    """Return the pool rows, those first of which the network is least sure."""
    pool, probabilities = task.rows(Split.POOL), task.samples.dataset.probabilities
    assert probabilities is not None
    return pool[np.argsort(np.asarray(probabilities[pool]).max(axis=1), kind="stable")]


def by_combinations(task: Task, budget: int) -> IntArray:
    """Return pool rows by the paper's rule.

    Slices come by validation error until they hold nine tenths of all failures; the budget is shared by their failures; least
    sure images come first. What slices cannot use is left to the least sure images of the whole pool.
    """
    slices, validation = task.combinations, task.rows(Split.VALIDATION)
    failures = slices.failures(validation, task.is_right)
    worst = worst_combinations(slices.accuracy(validation, task.is_right), failures, beta=BETA)
    order = _least_sure(task)
    own = [order[slices.numbers[order] == one] for one in worst]
    counts = apportioned(
        budget,
        failures[list(worst)].astype(np.float64),
        np.array([len(one) for one in own], dtype=np.int64),
    )
    taken = [rows[:count] for rows, count in zip(own, counts, strict=True)]
    found = np.concatenate([*taken, np.zeros(0, dtype=np.int64)])
    rest = order[~np.isin(order, found)][: budget - len(found)]
    return np.sort(np.concatenate([found, rest]))


def _bench(task: Task, budget: int, *, seed: int, with_slices: bool) -> RepairBench:
    settings = Settings(
        seed=seed,
        discover=DiscoverSettings(methods=(METHOD,)),
        repair=RepairSettings(budget=budget),
    )
    prepared = Prepared(
        samples=task.samples,
        assistants=task.assistants,
        embedder=None,
        classifier=None,
        summary=EmbedResult(),
        inputs={},
    )
    bare = RepairBench.of(prepared, settings)
    if not with_slices:
        return bare
    discovery, confirmation = bare.pairs[0]
    found = build_discoverers(settings)[METHOD].discover(discovery, bare.criterion, seed=seed)
    limits = settings.discover
    kept = screened(
        found.slices,
        discovery,
        bare.criterion,
        largest_p=limits.screen_p,
        most=limits.max_tested,
    ).kept
    evidence = build_verifier(settings).verify(
        kept, discovery=discovery, confirmation=confirmation, criterion=bare.criterion
    )
    pairs = [
        (one, entry)
        for one, entry in zip(kept, evidence, strict=True)
        if entry.verdict is Verdict.CONFIRMED
    ]
    return replace(
        bare,
        slices=tuple(one for one, _ in pairs),
        evidence=tuple(entry for _, entry in pairs),
    )
