"""Refining projects: one by itself, or several with one set of images."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.core.failures import describe_criterion
from weakspot.core.heads import Head
from weakspot.core.roles import ImageGenerator
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.generation.service.generator_choice import build_generator
from weakspot.generation.service.service import service_for
from weakspot.lab.collective.family import Family, FamilyMember, project_name, refuse_unrepairable
from weakspot.lab.refine.family_refinement import FamilyRefinement, refine_family
from weakspot.lab.refine.project_images import (
    ClassifierFeatures,
    GenerationTerms,
    ProjectImages,
    measured_ids,
)
from weakspot.lab.refine.records import RefineInputs, Refinement
from weakspot.lab.refine.refinement import refine_model
from weakspot.lab.refine.request import Prompt, RefineRequest
from weakspot.lab.refine.subjects import Subject
from weakspot.pipeline.stage_clock import command_line, library_versions
from weakspot.project.project import Project
from weakspot.repair.bench import RepairBench
from weakspot.repair.collective import FamilyType

MOST_SHOWN = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinedProject:
    """A refined project.

    Args:
        refinement: the record.
        head: the last layer after the refinement.
        class_names: the classes in the order of that layer.
        shown: some images of every prompt of the refinement.
    """

    refinement: Refinement
    head: Head
    class_names: tuple[str, ...]
    shown: Mapping[str, Sequence[Image.Image]]


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinedProjects:
    """Projects that were refined together.

    Args:
        refinement: the record.
        heads: the last layer of every model after the collective refinement.
        class_names: the classes in the order of each of these layers.
        shown: some images of every prompt of the collective set.
    """

    refinement: FamilyRefinement
    heads: Mapping[str, Head]
    class_names: Mapping[str, tuple[str, ...]]
    shown: Mapping[str, Sequence[Image.Image]]


def refine_project(
    project: Project,
    request: RefineRequest | None = None,
    *,
    generator: ImageGenerator | None = None,
    progress: StageProgress = no_stage_progress,
) -> RefinedProject:
    """Refine the classifier of a project with generated images of what its failures show; images are generated once.

    Args:
        project: with samples; a run is not needed.
        request: what is asked for.
        generator: a ready one, instead of the configured one.
        progress: told how far it is.

    Raises:
        ConfigError: if there is no classifier or generator, or the cost is not agreed to.
        ModelError: if the last layer of the classifier is not known.
        NotEnoughDataError: if there are no training or test samples, or no failures that show a proposed value.
        RefusedPromptError: if the generator can generate none of the values.
    """
    asked = request or RefineRequest()
    started = _now()
    member = _member(project)
    with _store([project], [member], generator, progress) as images:
        model = refine_model(Subject.of(member), images, asked, progress=progress)
        shown = _shown(
            images, [(one.class_name, one.prompt) for one in model.refinement.arms[0].prompts]
        )
    made_from = _made_from([project], [member], images, asked, started)
    return RefinedProject(
        refinement=model.refinement.model_copy(update={"made_from": made_from}),
        head=model.head,
        class_names=member.dataset.class_names,
        shown=shown,
    )


def refine_projects(
    projects: Sequence[Project],
    request: RefineRequest | None = None,
    *,
    kind: FamilyType = 1,
    source: str = "",
    generator: ImageGenerator | None = None,
    progress: StageProgress = no_stage_progress,
) -> RefinedProjects:
    """Refine the classifiers of several projects with one set of images, beside each one's own; each is named after its folder.

    Args:
        projects: two or more on (mostly) the same images; the generator and its settings are those of the first.
        request: what is asked for; arms are not used.
        kind: 1: one set from the failures of all; 2: from those of one.
        source: for type 2, the name of that one; the first by default.
        generator: a ready one, instead of the configured one.
        progress: told how far it is.

    Raises:
        ConfigError: if fewer than two projects are given, two of the same name, or options that do not go together.
        DataError: if the projects have other classes, or share no sample to measure on.
    """
    asked = request or RefineRequest()
    started = _now()
    chosen = _source(projects, kind, source)
    members = [_member(project) for project in projects]
    family = Family.of(members)
    with _store(projects, members, generator, progress) as images:
        refined = refine_family(family, images, asked, source=chosen, progress=progress)
        shown = _shown(images, [(one.class_name, one.prompt) for one in refined.refinement.prompts])
    made_from = _made_from(projects, members, images, asked, started)
    return RefinedProjects(
        refinement=refined.refinement.model_copy(update={"made_from": made_from}),
        heads=refined.heads,
        class_names={member.name: member.dataset.class_names for member in members},
        shown=shown,
    )


def _source(projects: Sequence[Project], kind: FamilyType, source: str) -> str | None:
    if kind == 1 and source:
        raise ConfigError(
            "--from says whose failures to use, which is for --type 2.",
            given=source,
            fix="Add --type 2.",
        )
    names = [project_name(project) for project in projects]
    if len(names) != len(set(names)):
        raise ConfigError(
            "Projects that are refined together need folders with different names.", given=names
        )
    return None if kind == 1 else source or names[0]


def _member(project: Project) -> FamilyMember:
    prepared, name = project.prepared(), project_name(project)
    refuse_unrepairable(name, prepared.samples)
    criterion = project.settings.failure.criterion()
    return FamilyMember(name=name, bench=RepairBench.of(prepared, project.settings, criterion, ()))


@contextmanager
def _store(
    projects: Sequence[Project],
    members: Sequence[FamilyMember],
    generator: ImageGenerator | None,
    progress: StageProgress,
) -> Iterator[ProjectImages]:
    """Give images that are kept in the first project; features are kept in the project of their classifier."""
    first, prepared = projects[0], members[0].bench.prepared
    image_generator = generator or build_generator(
        first.settings, first.folder, prepared, purpose="train", store=first.store
    )
    folder = first.store.generated
    with first.store.writing():
        service = service_for(
            first.settings,
            image_generator,
            folder,
            embedder=prepared.embedder,
            class_names=prepared.samples.dataset.class_names,
            progress=lambda done, total: progress("draw", done, total),
        )
        models = {
            member.name: ClassifierFeatures(member.bench.prepared, project.store.generated)
            for project, member in zip(projects, members, strict=True)
        }
        terms = GenerationTerms(
            generator=image_generator, settings=first.settings.generator, seed=first.settings.seed
        )
        measured = frozenset().union(*[measured_ids(member.bench.prepared) for member in members])
        images = ProjectImages(service, terms, models, measured)
        try:
            yield images
        finally:
            images.flush()


def _shown(
    images: ProjectImages, prompts: Sequence[tuple[str, str]]
) -> dict[str, list[Image.Image]]:
    return {
        text: images.shown(Prompt(class_name, text), MOST_SHOWN) for class_name, text in prompts
    }


def _made_from(
    projects: Sequence[Project],
    members: Sequence[FamilyMember],
    images: ProjectImages,
    request: RefineRequest,
    started: str,
) -> RefineInputs:
    first = projects[0].settings
    return RefineInputs(
        started=started,
        command=command_line(),
        seed=first.seed,
        versions=library_versions(),
        inputs={member.name: member.bench.prepared.inputs for member in members},
        generator_id=images.generator_id,
        request=json.loads(json.dumps(asdict(request))),
        criterion=describe_criterion(first.failure.criterion()),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
