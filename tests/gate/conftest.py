import pytest

from weakspot.core.evidence import Interval
from weakspot.gate.result import PolicyEntry, PolicyResult, Ruling

NASTY = "disc: <b>|green` & @all ]]> \x01 https://example.org"


@pytest.fixture
def result():
    """What became of a policy, with every verdict and a title that means something in every format."""

    def made(*, unsure_fails=False, n_more=0):
        entries = [
            PolicyEntry(
                rule="slice_accuracy",
                subject=NASTY,
                slice_id="abc",
                verdict=Ruling.VIOLATED,
                value=0.4,
                interval=Interval(low=0.3, high=0.5),
                bar=0.7,
                n_samples=60,
                sentence=f"“{NASTY}” is bad.",
            ),
            PolicyEntry(
                rule="regressions",
                subject="disc",
                verdict=Ruling.KEPT,
                value=-0.01,
                interval=Interval(low=-0.05, high=0.03),
                bar=-0.02,
                before=0.9,
                after=0.89,
                n_samples=100,
                sentence="“disc” went from 90 % to 89 %.",
            ),
            PolicyEntry(
                rule="slice_gap",
                subject="small",
                verdict=Ruling.NOT_JUDGED,
                n_samples=3,
                sentence="“small” has 3 samples.",
            ),
            PolicyEntry(
                rule="slice_gap",
                subject="known",
                verdict=Ruling.ACCEPTED,
                sentence="“known” is accepted.",
            ),
        ]
        more = [
            PolicyEntry(
                rule="class_accuracy",
                subject=f"c{place}",
                verdict=Ruling.VIOLATED,
                sentence=f"Class {place} is bad. " * 20,
            )
            for place in range(n_more)
        ]
        return PolicyResult(
            run_id="run-1",
            started="2026-05-01T10:00:00+00:00",
            baseline_run_id="run-0",
            policy="policy.toml",
            unsure_fails=unsure_fails,
            entries=(*entries, *more),
            notes=("A note.",),
        )

    return made
