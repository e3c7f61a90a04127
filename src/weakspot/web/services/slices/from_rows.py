"""Samples that a person picked out, as a rule that holds for unseen samples too: a direction that tells them from their class."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.class_embeddings import separating_cut
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.failures import ClassProblem
from weakspot.core.rules import LinearRule
from weakspot.core.seeding import generator
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import association
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.slices import changes
from weakspot.web.services.slices.editing import ChangedSlice, changed_slice
from weakspot.web.services.slices.requests import PickedRows, spoken_name
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

METHOD = "selection"
LEAST_PICKED = 5
N_PARTS = 5
MOST_FITTED = 20_000
PENALTIES = (0.001, 0.01, 0.1, 1.0)


class Agreement(View):
    """How well a rule finds the samples that were picked, on samples that took no part in fitting it.

    Args:
        precision: share of its members that were picked.
        recall: share of the picked ones that are members.
    """

    precision: float
    recall: float


class SliceFromRows(ChangedSlice):
    """What became of samples that a person picked out.

    Args:
        n_picked: picked samples that were used: of the class, on the half that people look at, with an embedding.
        n_left_out: picked samples that were not.
        agreement: how well the rule finds them.
    """

    n_picked: int
    n_left_out: int
    agreement: Agreement


@dataclass(frozen=True, kw_only=True, eq=False)
class _Separation:
    direction: DoubleArray
    offset: float
    threshold: float
    found: BoolArray


def slice_from_rows(workspace: Workspace, asked: PickedRows, *, by: str) -> SliceFromRows:
    """Make a slice of picked samples and prove it with all others of the newest run.

    Raises:
        DataError: if there is no such class, or row numbers refer to tables that the project no longer has.
        NotEnoughDataError: if too few samples were picked or left, or nothing tells them apart.
    """
    if asked.tables not in ("", workspace.tables_key):
        raise DataError(
            "The samples of the project have changed since this page was opened.",
            fix="Load the page again.",
        )
    problem, embeddings = workspace.class_embeddings(asked.title)
    picked = np.isin(problem.rows, np.asarray(asked.rows, dtype=np.int64))
    n_picked = int(picked.sum())
    if min(n_picked, len(picked) - n_picked) < LEAST_PICKED:
        raise NotEnoughDataError(
            f"{n_picked} of {len(picked)} samples of {asked.title!r} on the half to look at were picked; at least {LEAST_PICKED} "
            "must be picked and as many left.",
            fix="Pick more samples of this class.",
        )
    separation = _separate(embeddings, picked, problem.groups, seed=workspace.project.settings.seed)
    found = _slice(workspace, problem, separation, words=asked.words, n_picked=n_picked)
    record = changes.with_slices(workspace, [found], by=by)
    return SliceFromRows(
        **dict(changed_slice(record, found.slice_id)),
        n_picked=n_picked,
        n_left_out=len(set(asked.rows)) - n_picked,
        agreement=_agreement(separation.found, picked),
    )


def _slice(
    workspace: Workspace,
    problem: ClassProblem,
    separation: _Separation,
    *,
    words: str,
    n_picked: int,
) -> FailureSlice:
    rule = LinearRule(
        space=CLIP,
        encoder_id=workspace.discovery.space(CLIP).encoder_id,
        direction=tuple(separation.direction.astype(np.float32).tolist()),
        offset=separation.offset,
        threshold=separation.threshold,
    )
    return FailureSlice(
        class_name=problem.class_name,
        side=problem.side,
        rule=rule,
        method=METHOD,
        parameters={"n_picked": n_picked},
        found_on=workspace.discovery_use,
        n_found=int(rule.members(workspace.discovery, problem.rows).sum()),
        names=(spoken_name(workspace, problem.class_name, problem.side, words),),
    )


def _agreement(found: BoolArray, picked: BoolArray) -> Agreement:
    both = int((found & picked).sum())
    return Agreement(
        precision=both / max(1, int(found.sum())), recall=both / max(1, int(picked.sum()))
    )


def _separate(
    embeddings: FloatArray, picked: BoolArray, groups: IntArray | None, *, seed: int
) -> _Separation:
    """Return the direction that tells picked samples from the others, and which samples it finds without having seen them.

    Ridge regression on the picks, each side weighing the same; the penalty is the one that does best on samples left out of the
    fit, and the threshold is chosen on the scores of samples left out, because those of fitted samples lie too far apart.
    """
    draws = generator(seed, METHOD)
    parts = part_numbers(picked, groups, draws)
    fitted = _at_most(picked, MOST_FITTED, draws)
    best: tuple[float, float, float, BoolArray] | None = None
    for penalty in PENALTIES:
        scores = np.empty(len(picked))
        for part in range(N_PARTS):
            used = fitted & (parts != part)
            direction, offset = _ridge(embeddings[used], picked[used], penalty)
            scores[parts == part] = embeddings[parts == part] @ direction + offset
        cut = separating_cut(scores, picked, min_inside=LEAST_PICKED)
        if cut is None:
            continue
        strength = association(picked, scores >= cut)
        if best is None or strength > best[0] + 1e-9:
            best = strength, penalty, cut, scores >= cut
    if best is None or best[0] <= 0:
        raise NotEnoughDataError(
            "Nothing in the embeddings tells these samples from the rest of their class.",
            fix="Pick samples that look alike.",
        )
    direction, offset = _ridge(embeddings[fitted], picked[fitted], best[1])
    return _Separation(direction=direction, offset=offset, threshold=best[2], found=best[3])


def _ridge(embeddings: FloatArray, picked: BoolArray, penalty: float) -> tuple[DoubleArray, float]:
    weights = np.where(picked, 0.5 / max(1, picked.sum()), 0.5 / max(1, (~picked).sum()))
    centre = weights @ embeddings
    centred = (embeddings - centre).astype(np.float64)
    wanted = np.where(picked, 1.0, -1.0)
    products = (centred * weights[:, None]).T @ centred
    ridge = penalty * np.trace(products) / len(products) + 1e-12
    direction = np.linalg.solve(
        products + ridge * np.eye(len(products)), centred.T @ (weights * wanted)
    )
    return direction, -float(direction @ centre)


def part_numbers(
    picked: BoolArray, groups: IntArray | None, draws: np.random.Generator
) -> IntArray:
    """Return the part of every sample [n]; groups stay whole, unless the picked samples are all of one."""
    if groups is not None and len(np.unique(groups[picked])) > 1:
        from weakspot.core.group_dealing.kernels import fold_numbers

        found: IntArray = fold_numbers(picked, draws.permutation(len(picked)), N_PARTS, groups)[0]
        return found
    parts = np.empty(len(picked), dtype=np.int64)
    for side in (picked, ~picked):
        own = np.flatnonzero(side)
        parts[draws.permutation(own)] = np.arange(len(own)) % N_PARTS
    return parts


def _at_most(picked: BoolArray, most: int, draws: np.random.Generator) -> BoolArray:
    """Return which samples are fitted on: all, or as many of either side as there is time for."""
    used = np.ones(len(picked), dtype=np.bool_)
    for side in (picked, ~picked):
        own = np.flatnonzero(side)
        used[draws.permutation(own)[most // 2 :]] = False
    return used
