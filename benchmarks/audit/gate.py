"""The release gate: two models on the same samples, one slice fell or nothing did, judged as a build server judges."""

import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weakspot
from audit.questions import Answer
from weakspot.gate.check import CheckRequest, check
from weakspot.gate.policy import parse_policy
from weakspot.gate.result import Ruling
from weakspot.gate.runs import baseline_of, ensure_run

CLASSES = ("cup", "bowl")
RIGHT_BEFORE = 0.9


@dataclass(frozen=True, kw_only=True)
class GatePlan:
    """Two models.

    Args:
        fall: how much accuracy falls on the first slice; 0: nothing falls anywhere.
        churn: share of samples that are lost by chance, and as many are gained.
        n_slices: named slices, all of the same class.
        n_members: samples of each.
    """

    fall: float = 0.1
    churn: float = 0.025
    n_slices: int = 7
    n_members: int = 100

    @property
    def slice_size(self) -> int:
        """Return the samples of the slice that falls, 0 if none does."""
        return self.n_members if self.fall else 0


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoModels:
    """Samples of one class, the slice of each, and which of them two models get right."""

    places: np.ndarray
    before: np.ndarray
    now: np.ndarray


def make_models(plan: GatePlan, seed: int) -> TwoModels:
    """Return two models; on average as many samples are lost as gained, but for the slice that falls."""
    random = np.random.default_rng([seed, 4177])
    places = np.repeat(np.arange(plan.n_slices), plan.n_members)
    before = random.random(len(places)) < RIGHT_BEFORE
    lot = random.random(len(places))
    lost = plan.churn + plan.fall * (places == 0)
    now = np.where(before, lot >= lost / RIGHT_BEFORE, lot < plan.churn / (1.0 - RIGHT_BEFORE))
    return TwoModels(places=places, before=before, now=now)


def judge_release(models: TwoModels) -> Answer:
    """Check the second model against the first; a violated subject that did not fall is a false finding."""
    names = sorted({f"place{number}" for number in models.places})
    rules = {
        "regressions": {"of": ["slices"], "max_drop": 0.0},
        "slices": [
            {"name": name, "class": CLASSES[0], "column": "place", "value": name} for name in names
        ],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = _project(folder, models, models.before)
        baseline = baseline_of(project, ensure_run(project).record)
        _write(folder / "table.csv", models, models.now)
        request = CheckRequest(
            policy=parse_policy(rules, where="the audit"), baseline=baseline, policy_name="audit"
        )
        result = check(weakspot.Project.open(project.folder), request)[0]
    flagged = {entry.subject for entry in result.of(Ruling.VIOLATED)}
    return Answer(
        n_confirmed=len(flagged),
        n_false=len(flagged - {"place0"}),
        is_found="place0" in flagged,
    )


def judge_same(models: TwoModels) -> Answer:
    """Check two models of which neither is better: whatever is violated is false."""
    answer = judge_release(models)
    return Answer(n_confirmed=answer.n_confirmed, n_false=answer.n_confirmed)


def _project(folder: Path, models: TwoModels, is_right: np.ndarray) -> weakspot.Project:
    _write(folder / "table.csv", models, is_right)
    settings = {
        "data": {"columns": {"key": "key"}},
        "attributes": {"use_vocabulary": False, "use_properties": False, "columns": ["place"]},
        "discover": {"methods": ["attributes"]},
    }
    return weakspot.Project.create(
        folder / "project",
        data=str(folder / "table.csv"),
        settings=weakspot.Settings.model_validate(settings),
    )


def _write(path: Path, models: TwoModels, is_right: np.ndarray) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["key", "label", "prediction", "split", "place"])
        for row, (place, right) in enumerate(zip(models.places, is_right, strict=True)):
            said = CLASSES[0] if right else CLASSES[1]
            writer.writerow([f"s{row:05d}", CLASSES[0], said, "validation", f"place{place}"])
        for row in range(20):
            writer.writerow([f"b{row:05d}", CLASSES[1], CLASSES[1], "validation", "elsewhere"])
