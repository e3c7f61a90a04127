"""What an agent may ask of a project and do with it; no protocol, only answers."""

from dataclasses import dataclass
from pathlib import Path

from weakspot.core.errors import ConfigError
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.integrations.exchange import EXPORTS, ExportCall, export_to
from weakspot.lexicon.class_names import class_in
from weakspot.media.images import jpeg_at
from weakspot.pipeline.halves import split_in_halves
from weakspot.pipeline.reporting import place_of_report
from weakspot.project.project import Project
from weakspot.release.checking import CheckRequest, check
from weakspot.release.policy import load_policy
from weakspot.report.findings import slice_sentences
from weakspot.report.first_answer import first_answer
from weakspot.report.image_budget import choose_images
from weakspot.store.project import DATA_FOLDER

MOST_IMAGES = 24
SIDE = 256


@dataclass(frozen=True, kw_only=True)
class ShownSample:
    """One image of a slice, with what the classifier says of it."""

    caption: str
    jpeg: bytes


class ProjectTools:
    """One project, asked by name of tool.

    Args:
        folder: the project.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def findings(self) -> dict[str, object]:
        """Return what the newest run found: the first answer, and every confirmed slice with its figures."""
        record = self._project().run_record()
        answer = first_answer(record)
        return {
            "run": record.run_id,
            "headline": answer.headline,
            "problems": [check.sentence for check in answer.problems],
            "whole_classes": [one.text for one in answer.findings if not one.slice_id],
            "slices": [
                self._told(record, found.slice_id)
                for found, evidence in record.published()
                if evidence.explained is None
            ],
            "to_do": [one.sentence for one in answer.to_do],
            "not_confirmed": answer.not_confirmed,
        }

    def evidence(self, slice_id: str) -> dict[str, object]:
        """Return everything that was measured of a slice, confirmed or not.

        Raises:
            ConfigError: if there is none of this id.
        """
        record = self._project().run_record()
        measured = next(
            (one for one in record.evidence if one.slice_id == self._full_id(record, slice_id)),
            None,
        )
        told = self._told(record, slice_id)
        return told if measured is None else told | {"evidence": measured.model_dump(mode="json")}

    def images(self, slice_id: str, n_images: int) -> dict[str, list[ShownSample]]:
        """Return images of a slice and of the rest of its class, among the samples that questions may be thought up on.

        Samples that a question is judged on stay unseen, so that what is asked after looking can still be proven.

        Raises:
            ConfigError: if there is no slice of this id, or nothing to show.
        """
        project = self._project()
        record = project.run_record()
        found = record.slices_by_id()[self._full_id(record, slice_id)]
        samples = project.samples(record)
        if not samples.dataset.has_images:
            raise ConfigError(
                "The samples of this project have no images.", fix="Ask for the evidence instead."
            )
        halves = split_in_halves(samples, project.settings, project.criterion, slices=record.slices)
        shown = choose_images(
            found,
            halves[0][0],
            project.criterion,
            n_images=max(1, min(n_images, MOST_IMAGES)),
        )
        dataset = samples.dataset
        places = dict(zip(dataset.sample_ids(), dataset.locations(), strict=True))
        strips = {"in the slice": shown.hard, "rest of the class": shown.easy}
        return {
            name: [
                ShownSample(caption=image.caption, jpeg=data)
                for image in images
                if (data := jpeg_at(places[image.sample_id], SIDE)) is not None
            ]
            for name, images in strips.items()
        }

    def ask(self, phrase: str, class_name: str) -> dict[str, object]:
        """Put words to held-out samples; the question is entered in the ledger and counts."""
        project = self._project()
        dataset = project.samples().dataset
        named = class_name or class_in([phrase], dataset.class_names)
        report = project.ask(named, [phrase])
        (answer,) = report.answers
        return {
            "class": answer.class_name,
            "phrase": answer.phrase,
            "answer": answer.fit.value,
            "advice": answer.advice,
            "held_out": answer.confirmation.model_dump(mode="json"),
            "p_value": answer.p_value,
            "p_over_everything_asked": answer.p_after_looks,
            "left": report.left,
        }

    def run(self, progress: StageProgress = no_stage_progress) -> dict[str, object]:
        """Do the whole loop, write the report, and return the findings."""
        project = Project.open(self.folder, progress=progress)
        record = project.run()
        return {"report": str(place_of_report(project.store, record.run_id)), **self.findings()}

    def check(self, policy: str) -> dict[str, object]:
        """Judge the newest run by a policy file of the project folder."""
        request = CheckRequest(policy=load_policy(self._inside(policy)), policy_name=policy)
        return check(self._project(), request).result.model_dump(mode="json")

    def export(self, to: str, out: str) -> dict[str, object]:
        """Write the findings for another tool, into a folder within the project folder."""
        if to not in EXPORTS:
            raise ConfigError(
                "There is no such tool.", given=to, fix=f"Choose among: {', '.join(EXPORTS)}."
            )
        folder = self._inside(out)
        own = self.folder.resolve()
        if folder == own or folder.is_relative_to(own / DATA_FOLDER):
            raise ConfigError(
                "This is where the project keeps its own files.",
                given=out,
                fix="Name a new folder, such as exports/coco.",
            )
        written = export_to(self._project(), ExportCall(to=to, folder=folder))
        return {"files": [str(path) for path in written.files], "sentence": written.sentence}

    def _project(self) -> Project:
        return Project.open(self.folder)

    def _inside(self, name: str) -> Path:
        """Return a path in the project folder; an agent reads and writes nowhere else."""
        home = self.folder.resolve()
        path = home / name if "\0" in name else (home / name).resolve()
        if "\0" in name or not path.is_relative_to(home):
            raise ConfigError(
                "This path leads out of the project folder.",
                given=name,
                fix="Name a file or folder within it.",
            )
        return path

    def _full_id(self, record: RunRecord, slice_id: str) -> str:
        known = [name for name in record.slices_by_id() if slice_id and name.startswith(slice_id)]
        if len(known) != 1:
            raise ConfigError(
                f"There is {'no slice' if not known else 'more than one slice'} of this id.",
                given=slice_id,
                fix="Take an id from the findings.",
            )
        return known[0]

    def _told(self, record: RunRecord, slice_id: str) -> dict[str, object]:
        full = self._full_id(record, slice_id)
        found = record.slices_by_id()[full]
        evidence = next((one for one in record.evidence if one.slice_id == full), None)
        said = slice_sentences(found, evidence, record)
        return {
            "slice_id": full,
            "title": found.title,
            "class": found.class_name,
            "verdict": "not measured" if evidence is None else evidence.verdict.value,
            "sentence": said.sentence,
            "proof": said.proof,
            "effect": said.effect,
            "cause": list(said.cause),
            "not_sure": said.not_sure,
        }
