"""One confirmed failure, to look at."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.evidence import Evidence
from weakspot.core.failures import ClassProblem
from weakspot.core.slices import FailureSlice, matches
from weakspot.findings.evaluated import EvaluatedSamples
from weakspot.findings.pictures import draw_bars, draw_strips
from weakspot.report.findings import SliceSentences
from weakspot.report.image_budget import SliceImages, choose_images

N_IMAGES = 8
SIDE = 112


class Repairing(Protocol):
    """Repairs some of what was found."""

    def repair(self, *slices: "FoundSlice") -> "Repairing":
        """Repair slices, all of them by default."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FoundSlice:
    """Which samples the classifier fails on, how often, how sure that is, and in which words.

    Args:
        found: the slice.
        evidence: what was measured of it on samples that did not find it.
        sentences: the same in words.
        of: the samples that were looked at.
        findings: the findings that it is one of.
    """

    found: FailureSlice
    evidence: Evidence
    sentences: SliceSentences
    of: EvaluatedSamples
    findings: Repairing

    def __repr__(self) -> str:
        """Return one line."""
        inside, outside = self.evidence.rate_inside, self.evidence.rate_outside
        return f"<FoundSlice {self.title!r}: {inside:.0%} fail, {outside:.0%} of the rest of the class>"

    @property
    def title(self) -> str:
        return self.found.title

    @property
    def class_name(self) -> str:
        return self.found.class_name

    @property
    def words(self) -> tuple[str, ...]:
        """Words that are known to fit, best first; empty if none is."""
        return tuple(name.phrase for name in self.found.names if not name.is_unsure)

    @cached_property
    def members(self) -> IntArray:
        """Places of the members in what was given, those deepest inside first."""
        return self.of.places(self._rows)

    @cached_property
    def failed(self) -> BoolArray:
        """Whether the classifier fails on each of the members."""
        problem = self._problem
        wrong = dict(zip(problem.rows.tolist(), problem.failed.tolist(), strict=True))
        return np.array([wrong[row] for row in self._rows.tolist()], dtype=np.bool_)

    @cached_property
    def images(self) -> list[str | None]:
        """Where the images of the members are, in the same order; None for a member without one."""
        return self.of.samples.dataset.locations(self._rows)

    def shown(self, n_images: int = N_IMAGES) -> SliceImages:
        """Return the samples deepest inside, and those of the class that are farthest from them."""
        return choose_images(self.found, self.of.samples, self.of.criterion, n_images=n_images)

    def plot(self, *, n_images: int = N_IMAGES, side: int = SIDE) -> Image.Image:
        """Return one image: members above the rest of their class, or the two failure rates where there are no images."""
        shown = self.shown(n_images)
        pictures = self.of.thumbnails(shown.sample_ids, side)
        if not pictures:
            return draw_bars(self.title, self.evidence)
        return draw_strips(self.evidence, shown, pictures, side)

    def repair(self) -> Repairing:
        """Repair this slice alone."""
        return self.findings.repair(self)

    @property
    def _problem(self) -> ClassProblem:
        return next(one for one in self.of.problems if matches(self.found, one))

    @cached_property
    def _rows(self) -> IntArray:
        problem = self._problem
        scores = self.found.rule.scores(self.of.samples, problem.rows)
        inside = self.found.inside(self.of.samples, problem)
        order = np.argsort(-scores, kind="stable")
        return problem.rows[order[inside[order]]]
