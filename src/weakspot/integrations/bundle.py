"""What is handed to another tool: samples, predictions, confirmed slices and embeddings, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.evidence import Evidence
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkedSlice:
    """A confirmed slice with the samples that its rule takes in, of every split.

    Args:
        found: the slice.
        evidence: what was measured on the confirmation half.
        rows: rows of the data set [m], ascending.
        tag: short name for other tools, without blanks: `weakspot-apple-green`. Different slices have different tags.
    """

    found: FailureSlice
    evidence: Evidence
    rows: IntArray
    tag: str


@dataclass(frozen=True, kw_only=True)
class ListedSample:
    """A sample that a person should label, or whose label a person should look at.

    Args:
        row: row of the data set.
        why: one line for the person who labels.
        suggested: what a person says it is, to start from; the classifier's answer if empty.
    """

    row: int
    why: str
    suggested: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ExchangeBundle:
    """Everything that exports may need; nothing is computed by them.

    Args:
        name: of the project.
        samples: all samples; `samples.dataset` has labels, predictions and columns, `samples.spaces` embeddings.
        record: the run that is exported, or None when there is none yet.
        slices: its confirmed slices that nobody dismissed, largest gap first.
        has_failed: whether the classifier failed on a sample [n]; False where that is not known.
        is_judged: whether that is known [n].
        report_files: files of the report of the run, if it was written.
        model_card: Markdown of the model card, empty if there is no run.
        settings: all settings of the project as plain values.
        to_label: what people should look at: suspect labels of confirmed slices first, then pool samples without a label.
        copies_images: whether images are copied into the export instead of being pointed to.
    """

    name: str
    samples: SampleSet
    record: RunRecord | None
    slices: tuple[MarkedSlice, ...]
    has_failed: BoolArray
    is_judged: BoolArray
    report_files: tuple[Path, ...] = ()
    model_card: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    to_label: tuple[ListedSample, ...] = ()
    copies_images: bool = False

    def tags(self) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in range(len(self.samples.dataset))]
        for marked in self.slices:
            for row in marked.rows.tolist():
                found[row].append(marked.tag)
        return found

    def embeddings(self) -> FloatArray | None:
        """Return the embeddings that phrases can be compared with [n, d], else the classifier's own, else None."""
        spaces = self.samples.spaces
        chosen = spaces.get("clip") or next(iter(spaces.values()), None)
        return None if chosen is None else np.asarray(chosen.embeddings)


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an export wrote.

    Args:
        files: the most useful one first.
        sentence: what to do with it, with the line to type.
    """

    files: tuple[Path, ...]
    sentence: str
