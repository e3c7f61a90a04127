"""What was found, as one object: a table, findings to look at, a repair, a report, the browser."""

import shutil
import subprocess
import sys
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import pyarrow as pa

from weakspot.core.errors import MissingExtraError
from weakspot.core.run import RunRecord
from weakspot.findings.evaluated import EvaluatedSamples
from weakspot.findings.found import FoundSlice
from weakspot.findings.pictures import finding_html, first_lines_html
from weakspot.findings.rows import finding_row
from weakspot.pipeline.halves import used_rows
from weakspot.project.project import Project
from weakspot.repair.stage import RepairRequest
from weakspot.report.findings import slice_sentences
from weakspot.report.first_answer import FirstAnswer, first_answer
from weakspot.report.wording import count

THUMBNAIL_SIDE = 128


class Findings(Sequence[FoundSlice]):
    """Confirmed failures of a classifier, strongest first; a list of them, with everything else that the run knows.

    Args:
        project: the project, whose folder holds everything.
        record: its run.
        is_temporary: whether the project's folder goes when the findings do.
    """

    def __init__(
        self,
        project: Project,
        record: RunRecord,
        *,
        is_temporary: bool = False,
    ) -> None:
        self.project = project
        self.record = record
        self._remove = (
            weakref.finalize(self, shutil.rmtree, project.folder, ignore_errors=True)
            if is_temporary
            else None
        )

    def __len__(self) -> int:
        """Return the number of confirmed slices."""
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> FoundSlice: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[FoundSlice]: ...
    def __getitem__(self, place: int | slice) -> FoundSlice | Sequence[FoundSlice]:
        """Return one finding, or some."""
        return self._found[place]

    def __repr__(self) -> str:
        """Return one line."""
        first = f", first: {self[0].title}" if len(self) else ""
        return f"<Findings: {count(len(self), 'confirmed slice')}{first}>"

    def __str__(self) -> str:
        """Return what a busy person reads first, in a few lines."""
        answer = self.answer
        lines = [
            answer.headline,
            *(check.sentence for check in answer.problems),
            *(f"- {finding.text}" for finding in answer.findings),
            answer.findings_note,
            *(f"To do: {one.sentence}" for one in answer.to_do),
            answer.not_confirmed,
        ]
        return "\n".join(line for line in lines if line)

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with images."""
        parts = [f"<p>{line}</p>" for line in first_lines_html(self.answer)]
        for one in self:
            shown = one.shown()
            pictures = self.evaluated.thumbnails(shown.sample_ids, THUMBNAIL_SIDE)
            parts.append(finding_html(one.title, one.sentences, shown, pictures))
        return f"<div>{''.join(parts)}</div>"

    @cached_property
    def answer(self) -> FirstAnswer:
        """What `weakspot run` prints first: whole classes that fail, findings, and what to do."""
        return first_answer(self.record)

    @cached_property
    def evaluated(self) -> EvaluatedSamples:
        """The samples that failures were looked for in."""
        samples = self.project.samples(self.record)
        rows = used_rows(samples, self.project.settings)
        rows = rows[samples.dataset.is_labelled[rows]]
        return EvaluatedSamples(samples=samples.only(rows), criterion=self.project.criterion)

    @property
    def rows(self) -> list[dict[str, object]]:
        """The table as a list of rows, for those without pandas."""
        return [finding_row(one) for one in self]

    @property
    def table(self) -> Any:
        """A pandas data frame, one row a finding.

        Raises:
            MissingExtraError: if pandas is not installed; `rows` and `arrow` need nothing.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "pandas", extra="pandas", purpose="Findings as a data frame"
            ) from error
        return pd.DataFrame(self.rows, columns=list(finding_row(None)))

    @property
    def arrow(self) -> pa.Table:
        """The same as an Arrow table, which polars and others take as it is."""
        columns = list(finding_row(None))
        return pa.table({name: [row[name] for row in self.rows] for name in columns})

    def repair(self, *slices: FoundSlice) -> "Findings":
        """Repair the classifier, or say what to collect where it cannot be retrained; return findings whose record tells the outcome.

        Args:
            slices: only these; by default all.
        """
        wanted = tuple(one.found.slice_id for one in slices)
        self.record = self.project.repair(self.record.run_id, RepairRequest(slice_ids=wanted))
        self.__dict__.pop("answer", None)
        return self

    def report(self) -> Path:
        """Write the report, and return where the page is that a browser shows."""
        return self.project.report(self.record.run_id)[0]

    def open(self, *, port: int = 0) -> "subprocess.Popen[bytes]":
        """Show the project in the browser; end the process that is returned to stop it.

        Args:
            port: where the pages are served; 0: any that is free.
        """
        command = [sys.executable, "-m", "weakspot", "serve", "-p", str(self.project.folder)]
        return subprocess.Popen([*command, "--port", str(port)] if port else command)

    def close(self) -> None:
        """Remove the temporary folder; with a folder of your own, do nothing."""
        if self._remove is not None:
            self._remove()

    @cached_property
    def _found(self) -> list[FoundSlice]:
        return [
            FoundSlice(
                found=found,
                evidence=evidence,
                sentences=slice_sentences(found, evidence, self.record),
                of=self.evaluated,
                findings=self,
            )
            for found, evidence in self.record.published()
            if evidence.explained is None
        ]
