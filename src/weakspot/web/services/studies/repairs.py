"""What the phrases of a study are good for: the last layer is retrained by each, and measured on test samples.

Which phrases are wanted is written to a file before the work starts; every result is written as soon as it is known, so an
interrupted work goes on where it was, and phrases that were repaired before cost nothing.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from weakspot.core.errors import DataError, ModelError, NotEnoughDataError, UnavailableError
from weakspot.core.run import StageProgress
from weakspot.core.slices import FailureSlice
from weakspot.core.spreads import GivenGroups
from weakspot.project.project import Project
from weakspot.repair.bench import RepairBench
from weakspot.store import atomic
from weakspot.web.services.classes.checks import phrase_slice
from weakspot.web.services.classes.phrases import phrase_score
from weakspot.web.services.studies.table import GivenFigures, RepairFigures, Triple
from weakspot.web.services.work import StudyRepairsArguments
from weakspot.web.services.workspace import Workspace

FOLDER = "studies"
STRATEGY = "worst-slice"
STAGE = "repairs"
NO_THRESHOLD = "The words do not pick out failures at any threshold."
TRIPLES: TypeAdapter[list[Triple]] = TypeAdapter(list[Triple])


def ask_for_repairs(
    project: Project, study: str, triples: Sequence[Triple], *, groups: str = ""
) -> None:
    """Write down which phrases shall be repaired by, and over which given groups; the next work of the study reads it."""
    folder = _folder(project)
    folder.mkdir(exist_ok=True)
    atomic.write_json(
        folder / f"{study}.asked.json",
        {"phrases": [[title, phrase, cut] for title, phrase, cut in triples], "groups": groups},
    )


def repairs(
    project: Project, arguments: Mapping[str, JsonValue], progress: StageProgress
) -> dict[str, JsonValue]:
    """Retrain by every phrase that was asked for and was not repaired yet."""
    study = StudyRepairsArguments.model_validate(arguments).study
    asked, groups = _read_asked(project, study)
    workspace = Workspace(project)
    journal = _Journal(project, study, _key(workspace, groups))
    missing = [triple for triple in asked if triple not in journal.known]
    bench: RepairBench | None = None
    for number, triple in enumerate(missing):
        progress(STAGE, number, len(missing))
        bench = bench or _bench(workspace, groups)
        journal.add(triple, _figures(workspace, bench, triple))
    progress(STAGE, len(missing), len(missing))
    return {"study": study, "n_phrases": len(asked), "n_repaired": len(missing)}


def repairs_of(
    workspace: Workspace, study: str, *, groups: str = ""
) -> dict[Triple, RepairFigures]:
    """Return what repairing by phrases of a study did, for the samples and settings that the project has now."""
    if not (_folder(workspace.project) / f"{study}.jsonl").exists():
        return {}
    return _Journal(workspace.project, study, _key(workspace, groups)).known


class _Journal:
    """Results of one study, one line each; lines of other samples or settings are passed over."""

    def __init__(self, project: Project, study: str, key: str) -> None:
        self._path = _folder(project) / f"{study}.jsonl"
        self._key = key
        self.known: dict[Triple, RepairFigures] = {}
        for line in (
            self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        ):
            self._take(line)

    def add(self, triple: Triple, figures: RepairFigures) -> None:
        """Write a result, and be sure that it is on disk; a line that a kill cut off before is ended first."""
        entry = json.dumps(
            {"key": self._key, "triple": triple, "figures": figures.model_dump(mode="json")}
        )
        with self._path.open("a+b") as stream:
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                entry = entry if stream.read(1) == b"\n" else f"\n{entry}"
            stream.write(f"{entry}\n".encode())
            stream.flush()
            os.fsync(stream.fileno())
        self.known[triple] = figures

    def _take(self, line: str) -> None:
        try:
            entry = json.loads(line)
            title, phrase, threshold = entry["triple"]
            if entry["key"] == self._key:
                self.known[title, phrase, threshold] = RepairFigures.model_validate(
                    entry["figures"]
                )
        except (ValueError, KeyError, TypeError):
            return


def _folder(project: Project) -> Path:
    return project.store.data / FOLDER


def _read_asked(project: Project, study: str) -> tuple[list[Triple], str]:
    path = _folder(project) / f"{study}.asked.json"
    if not path.exists():
        raise DataError(
            "Nothing was asked for in this study.",
            fix="Start the repairs from the page of the study.",
        )
    try:
        written = atomic.read_json(path)
        triples = list(dict.fromkeys(TRIPLES.validate_python(written.get("phrases"))))
        return triples, str(written.get("groups", ""))
    except ValidationError as error:
        raise DataError(
            "The list of phrases of the study cannot be read.", fix="Start the repairs again."
        ) from error


def _key(workspace: Workspace, groups: str) -> str:
    content = f"{STRATEGY}{workspace.prepared.inputs}{workspace.project.settings.model_dump_json()}"
    content += f" groups {groups}" if groups else ""
    return hashlib.sha256(content.encode()).hexdigest()


def _bench(workspace: Workspace, groups: str) -> RepairBench:
    """Return the bench of the project; its penalty is looked for once and given to all phrases, and so are given groups."""
    settings = workspace.project.settings
    if groups:
        repair = settings.repair.model_copy(update={"groups": groups})
        settings = settings.model_copy(update={"repair": repair})
    bench = RepairBench.of(workspace.prepared, settings, workspace.criterion, ())
    penalty = bench.trainer.penalty
    repair = settings.repair.model_copy(update={"l2": penalty}) if penalty else settings.repair
    return replace(bench, settings=settings.model_copy(update={"repair": repair}))


def _figures(workspace: Workspace, bench: RepairBench, triple: Triple) -> RepairFigures:
    try:
        own = replace(bench, slices=(_slice(workspace, triple),))
        arm = own.arm(STRATEGY, own.selection(STRATEGY), is_baseline=False)
    except (DataError, ModelError, NotEnoughDataError, UnavailableError) as error:
        return RepairFigures(worst_before=None, worst_after=None, note=error.what)
    given = None if arm.given is None else _given(arm.given)
    if arm.spread is None:
        return RepairFigures(
            worst_before=None,
            worst_after=None,
            note="There are fewer than two groups to compare.",
            given=given,
        )
    return RepairFigures(
        worst_before=arm.spread.worst_before, worst_after=arm.spread.worst_after, given=given
    )


def _given(found: GivenGroups) -> GivenFigures:
    """Return worst, average and gap over given groups, as the papers define them."""
    averages = {
        "given_average_before": found.overall_before,
        "given_average_after": found.overall_after,
    }
    if found.spread is None:
        return GivenFigures(**averages)
    worst = found.spread.worst_before, found.spread.worst_after
    return GivenFigures(
        **averages,
        given_worst_before=worst[0],
        given_worst_after=worst[1],
        given_gap_before=found.overall_before - worst[0],
        given_gap_after=found.overall_after - worst[1],
        given_change_low=found.spread.worst_change.low,
        given_change_high=found.spread.worst_change.high,
    )


def _slice(workspace: Workspace, triple: Triple) -> FailureSlice:
    title, phrase, own = triple
    threshold = phrase_score(workspace, title, phrase, limit=0).threshold if own is None else own
    if threshold is None:
        raise DataError(NO_THRESHOLD)
    return phrase_slice(workspace, title, phrase, threshold, is_own=own is not None)
