"""What became of a planted slice: its title's words, and whether they are right."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from names.slices import Planted
from weakspot.core.evidence import Verdict
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice

MIN_AGREEMENT = 0.5


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was said of a planted slice.

    Args:
        key: which slice.
        kind_of_word: what sort of word it needs.
        verdict: `right`, `wrong`, `unsure` (plain title, nearest words under "not sure"), `no word` or `not found`.
        title: as printed.
        words: nearest words, sure or not, best first.
        agreement: how well members agree with the planted ones.
    """

    key: str
    kind_of_word: str
    verdict: str
    title: str = ""
    words: tuple[str, ...] = ()
    agreement: float = 0.0

    @property
    def is_first_right(self) -> bool:
        """Return whether the nearest word is right, whether or not it is called sure."""
        return self.verdict == "right" or self.verdict.endswith("(right)")


def best_slice(
    planted: Planted, record: RunRecord, samples: SampleSet, folder: Path
) -> tuple[FailureSlice | None, float]:
    """Return the confirmed slice that agrees best with the planted one, and how well; none if that is too little."""
    truth = json.loads((folder / "truth.json").read_text())
    is_member = np.array([truth.get(_name(place), False) for place in samples.dataset.locations()])
    confirmed = {entry.slice_id for entry in record.evidence if entry.verdict is Verdict.CONFIRMED}
    own = [
        one
        for one in record.slices
        if one.slice_id in confirmed and one.class_name == planted.class_name
    ]
    agreed = sorted(
        ((_agreement(one, samples, is_member), -place) for place, one in enumerate(own)),
        reverse=True,
    )
    if not agreed or agreed[0][0] < MIN_AGREEMENT:
        return None, round(agreed[0][0], 2) if agreed else 0.0
    return own[-agreed[0][1]], round(agreed[0][0], 2)


def judge(planted: Planted, record: RunRecord, samples: SampleSet, folder: Path) -> Answer:
    """Return what the best agreeing confirmed slice is called."""
    best, agreement = best_slice(planted, record, samples, folder)
    given = {"key": planted.key, "kind_of_word": planted.kind_of_word, "agreement": agreement}
    if best is None:
        return Answer(**given, verdict="not found")
    words = tuple(name.contrast for name in best.names)
    return Answer(**given, verdict=_verdict(best, planted), title=best.title, words=words)


def _verdict(found: FailureSlice, planted: Planted) -> str:
    if found.name is not None:
        return "right" if is_right(found.name.contrast, planted.right) else "wrong"
    if not found.names:
        return "no word"
    return f"unsure ({'right' if is_right(found.names[0].contrast, planted.right) else 'wrong'})"


def is_right(contrast: str, right: tuple[str, ...]) -> bool:
    """Return whether every part of what is said holds a right word; colours of backgrounds are not colours of the thing."""
    return all(_part_is_right(part, right) for part in contrast.lower().split(", "))


def _part_is_right(part: str, right: tuple[str, ...]) -> bool:
    if "background" in part and not any(word in ("grass", "grassy", "forest") for word in right):
        return False
    words = re.findall(r"[a-z-]+", part)
    singular = [word[:-1] for word in words if word.endswith("s")]
    return any(one in words or one in singular or (" " in one and one in part) for one in right)


def _agreement(found: FailureSlice, samples: SampleSet, is_member: np.ndarray) -> float:
    rows = found.class_rows(samples)
    inside, wanted = found.rule.members(samples, rows), is_member[rows]
    total = int(inside.sum() + wanted.sum())
    return 2 * int((inside & wanted).sum()) / total if total else 0.0


def _name(location: str | None) -> str:
    return "images/" + str(location).rsplit("/", 1)[-1]
