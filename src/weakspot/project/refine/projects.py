"""Refining projects: images generated once and kept in the first project's folder, every classifier refined, and all of it as a page.

Sentences, tables and files: the page with the images, Markdown, the record, a contact sheet and the new last layers.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import FloatArray, child_seed
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError, ModelError, RefusedPromptError
from weakspot.core.evidence import Share
from weakspot.core.failures import describe_criterion
from weakspot.core.generated import GenerationRequest, GenerationResult, rejections
from weakspot.core.heads import Head
from weakspot.core.roles import ChecksPrompts, Classifier, ClassifierOutput, ImageGenerator
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.data.charts import heat_map, interval_chart
from weakspot.data.image_grid import labelled_grid
from weakspot.generate.parents import SeedSeries
from weakspot.generate.project_generator import build_generator
from weakspot.generate.service import GeneratorService, confirm_cost, service_for
from weakspot.models.files import head_bytes
from weakspot.project.collective import Family, FamilyMember, project_name, refuse_unrepairable
from weakspot.project.project import Project
from weakspot.project.refine.prompts import by_class_and_kind
from weakspot.project.refine.refinement import (
    HELD_OUT,
    SEED,
    TEST,
    FamilyRefinement,
    RefinedMember,
    refine_family,
    refine_model,
)
from weakspot.project.refine.training import (
    PLAIN,
    RANDOM,
    GeneratedPrompt,
    Prompt,
    RefinedArm,
    Refinement,
    RefineRequest,
    Subject,
)
from weakspot.repair.bench import RepairBench
from weakspot.repair.collective import FamilyType
from weakspot.report.document import figure, paragraph, share_cell, small_page, table, text_cell
from weakspot.report.repairs import p_words
from weakspot.report.wording import CERTAIN, count, interval, percent
from weakspot.run.embedding import KnowsEmbeddings
from weakspot.run.models import checked_output, reads_embeddings
from weakspot.run.preparation import FEATURES, Prepared
from weakspot.run.reporting import written
from weakspot.run.settings import Settings
from weakspot.run.stage_clock import command_line, library_versions
from weakspot.store.array_files import folder_name
from weakspot.store.embeddings import EmbeddingCache, KeyedRows

MAX_SEEDS = 2**31
IMAGES_A_CALL = 16

ImageOf = Callable[[str], Image.Image]


class ClassifierFeatures:
    """What is under a classifier's last layer for generated images, by content hash; each is asked about once.

    Args:
        prepared: the project's models and samples.
        folder: where features are kept.

    Raises:
        ConfigError: if there is no classifier, or it reads embeddings that nobody can make of new images.
    """

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        if prepared.classifier is None:
            raise ConfigError(
                "Without a classifier nothing can be computed of generated images.",
                where="[classifier]",
                fix="Configure one.",
            )
        self._classifier: Classifier = prepared.classifier
        self._embedder = prepared.embedder
        if reads_embeddings(self._classifier) and (
            self._embedder is None or isinstance(self._embedder, KnowsEmbeddings)
        ):
            raise ConfigError(
                "The classifier reads embeddings, and the project's embedder can make none of generated images.",
                where="[embedder]",
                fix="Configure an embedder of images.",
            )
        self._width = prepared.samples.space(FEATURES).embeddings.shape[1]
        self._folder = folder

    def of(self, keys: Sequence[str], image: ImageOf) -> FloatArray:
        """Return features [n, d] of images."""
        if not len(keys):
            return np.zeros((0, self._width), dtype=np.float32)
        return self._rows.rows(keys, lambda missing: self._compute([image(key) for key in missing]))

    def flush(self) -> None:
        self._rows.flush()

    @cached_property
    def _rows(self) -> KeyedRows:
        identity = f"{self._classifier.classifier_id}/features"
        return KeyedRows(
            EmbeddingCache(self._folder / FEATURES / folder_name(identity), identity=identity)
        )

    def _compute(self, images: Sequence[Image.Image]) -> FloatArray:
        parts = [
            images[start : start + IMAGES_A_CALL] for start in range(0, len(images), IMAGES_A_CALL)
        ]
        found = [self._output(part).features for part in parts]
        known = [
            np.asarray(features, dtype=np.float32) for features in found if features is not None
        ]
        if len(known) < len(found):
            raise ModelError(
                "The classifier gives no features of generated images, so nothing can be trained on them.",
                where=self._classifier.classifier_id,
            )
        return np.concatenate(known)

    def _output(self, images: Sequence[Image.Image]) -> ClassifierOutput:
        if reads_embeddings(self._classifier) and self._embedder is not None:
            embeddings = self._embedder.embed_prepared(
                [self._embedder.prepare(image) for image in images]
            )
            return checked_output(self._classifier, list(embeddings))
        return checked_output(
            self._classifier, [self._classifier.prepare(image) for image in images]
        )


class ProjectImages:
    """Images from a service for the classifiers of one or more projects.

    Args:
        service: generates, keeps and quality checks.
        generator: the one behind it.
        settings: of the project: what generating may cost, and the seed.
        models: what every classifier makes of images, by project name.
        measured: ids of samples that are measured on; no image may be composed from one of them.
    """

    def __init__(
        self,
        service: GeneratorService,
        generator: ImageGenerator,
        settings: Settings,
        models: Mapping[str, ClassifierFeatures],
        measured: frozenset[str] = frozenset(),
    ) -> None:
        self._service = service
        self._generator, self._settings = generator, settings
        self._models = models
        self._measured = measured
        self._generated: dict[Prompt, list[GenerationResult]] = {}

    @property
    def generator_id(self) -> str:
        return self._service.generator_id

    def refusals(self, prompts: Sequence[Prompt]) -> Mapping[Prompt, RefusedPromptError]:
        """Return the prompts that cannot be generated: the first image of each is generated, which is kept like all others."""
        wanted = list(dict.fromkeys(prompts))
        confirm_cost(self._generator, len(wanted), self._settings.generator)
        try:
            self._service.generate(
                [request for prompt in wanted for request in self._requests(prompt, 1)]
            )
        except RefusedPromptError:
            return {
                prompt: said for prompt in wanted if (said := self._refusal(prompt)) is not None
            }
        return {}

    def cannot_draw(self, prompts: Sequence[Prompt]) -> frozenset[Prompt]:
        """Return the prompts that the generator says it cannot draw."""
        found = set()
        if isinstance(self._generator, ChecksPrompts):
            for prompt in prompts:
                try:
                    self._generator.check_prompt(prompt.text)
                except RefusedPromptError:
                    found.add(prompt)
        return frozenset(found)

    def generate(self, wanted: Mapping[Prompt, int]) -> None:
        """Generate so many images of every prompt; what was generated before is not generated again.

        Raises:
            ConfigError: if the cost is not agreed to, or there are more than may be generated.
            DataError: if an image was composed from a sample that is measured on.
        """
        requests = {prompt: self._requests(prompt, n_images) for prompt, n_images in wanted.items()}
        confirm_cost(self._generator, sum(wanted.values()), self._settings.generator)
        every = iter(
            self._service.generate([request for own in requests.values() for request in own])
        )
        for prompt, own in requests.items():
            self._generated[prompt] = [next(every) for _ in own]
        self._refuse_measured()

    def features(self, model: str, prompt: Prompt, n_images: int) -> FloatArray:
        """Return a model's features [n, d] of the kept ones among the first images of a prompt."""
        kept = {generated.content_hash: generated for generated in self._kept(prompt, n_images)}
        return self._models[model].of(list(kept), lambda key: self._service.image(kept[key]))

    def features_of(self, model: str, images: Sequence[Image.Image]) -> FloatArray:
        """Return a model's features [n, d] of any images; each is asked about once."""
        keys = [
            hashlib.sha256(repr(one.size).encode() + one.tobytes()).hexdigest() for one in images
        ]
        by_key = dict(zip(keys, images, strict=True))
        return self._models[model].of(keys, by_key.__getitem__)

    def shown(self, prompt: Prompt, n_images: int) -> list[Image.Image]:
        every = self._kept(prompt, len(self._generated.get(prompt, ())))
        return [self._service.image(generated) for generated in every[:n_images]]

    def rejected(self) -> dict[str, int]:
        return rejections(generated for own in self._generated.values() for generated in own)

    def flush(self) -> None:
        for model in self._models.values():
            model.flush()

    def _kept(self, prompt: Prompt, n_images: int) -> list[GenerationResult]:
        return [
            generated
            for generated in self._generated.get(prompt, ())[:n_images]
            if generated.is_kept
        ]

    def _requests(self, prompt: Prompt, n_images: int) -> list[GenerationRequest]:
        return [
            GenerationRequest(class_name=prompt.class_name, prompt=prompt.text, seed=seed)
            for seed in self._seeds.places(*prompt, first=0, n=n_images)
        ]

    @cached_property
    def _seeds(self) -> SeedSeries:
        seed = self._settings.seed
        return SeedSeries(
            self._generator,
            lambda class_name, prompt, place: (
                child_seed(seed, "refine", class_name, prompt, str(place)) % MAX_SEEDS
            ),
            least=self._settings.generator.least_parents,
        )

    def _refusal(self, prompt: Prompt) -> RefusedPromptError | None:
        try:
            self._service.generate(self._requests(prompt, 1))
        except RefusedPromptError as error:
            return error
        return None

    def _refuse_measured(self) -> None:
        parents = {
            parent
            for own in self._generated.values()
            for generated in own
            for parent in generated.parents
        }
        if parents & self._measured:
            raise DataError(
                f"{len(parents & self._measured)} images were composed from validation or test samples of one of the projects.",
                fix="Refine projects together that have the same images in the same splits.",
            )


MAX_SHOWN = 6


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
        refinement, head = refine_model(Subject.of(member), images, asked, progress=progress)
        shown = _shown(images, refinement.arms[0].prompts)
    made_from = _made_from([project], [member], images, asked, started)
    return RefinedProject(
        refinement=refinement.model_copy(update={"made_from": made_from}),
        head=head,
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
        refinement, heads = refine_family(family, images, asked, source=chosen, progress=progress)
        shown = _shown(images, refinement.prompts)
    made_from = _made_from(projects, members, images, asked, started)
    return RefinedProjects(
        refinement=refinement.model_copy(update={"made_from": made_from}),
        heads=heads,
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
    return FamilyMember(name=name, bench=RepairBench.of(prepared, project.settings))


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
        datasets = [member.bench.prepared.samples.dataset for member in members]
        measured = frozenset[str]().union(
            *[one.sample_ids(one.rows_of(Split.VALIDATION, Split.TEST)) for one in datasets]
        )
        images = ProjectImages(service, image_generator, first.settings, models, measured)
        try:
            yield images
        finally:
            images.flush()


def _shown(
    images: ProjectImages, prompts: Sequence[GeneratedPrompt]
) -> dict[str, list[Image.Image]]:
    return {
        one.prompt: images.shown(Prompt(one.class_name, one.prompt), MAX_SHOWN) for one in prompts
    }


def _made_from(
    projects: Sequence[Project],
    members: Sequence[FamilyMember],
    images: ProjectImages,
    request: RefineRequest,
    started: str,
) -> dict[str, JsonValue]:
    """Return what a refinement was made from: when and by which command, with which libraries, samples, models and request."""
    first = projects[0].settings
    content = {
        "started": started,
        "command": command_line(),
        "seed": first.seed,
        "versions": library_versions(),
        "inputs": {member.name: member.bench.prepared.inputs for member in members},
        "generator_id": images.generator_id,
        "request": asdict(request),
        "criterion": describe_criterion(first.failure.criterion()),
    }
    made_from: dict[str, JsonValue] = json.loads(json.dumps(content))
    return made_from


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


COLUMNS = (
    ("clean", "clean"),
    ("failure", "failure"),
    ("seed", "seed"),
    ("held-out", "held_out"),
    ("test before", "test_before"),
    ("test after", "test_after"),
)
LEGEND = (
    "clean: test samples right before that still are; failure: test samples wrong before that are right now; seed: failures that "
    "the values came from; held-out: failures that chose nothing."
)
FAMILY_LEGEND = (
    "seed: failures that values came from; held-out: failures that chose nothing; resolved with the model's own images, the "
    "collective ones, and as many of the mere classes."
)


def headline(refinement: Refinement) -> str:
    """Return what the refinement did, in a sentence or two."""
    first, random = refinement.arms[0], refinement.arm(RANDOM)
    held = first.held_out
    if not held.total:
        return "No failure was held out, so it cannot be told what the refinement resolves."
    said = f"Refinement resolves {held.count} of {held.total} held-out failures ({percent(held.value)}, {interval(held.interval)})"
    if random is not None:
        many = (
            "as many"
            if random.n_images == first.n_images
            else f"{random.n_images} instead of {first.n_images}"
        )
        said += f"; {many} images of the mere classes resolve {random.held_out.count} ({percent(random.held_out.value)})"
        if first.p_against_random is not None:
            said += f", {p_words(first.p_against_random)}"
    kept = (
        f"{percent(first.clean.value)} of the test samples that were right before are still right."
    )
    first_words = _no_help(first) or _not_better(refinement)
    return " ".join(filter(None, (first_words, f"{said}.", kept)))


def _not_better(refinement: Refinement) -> str:
    """Return what the refinement is not better than, or not beyond chance; nothing if it is better than all that is beside it."""
    first, random, plain = (
        refinement.arms[0],
        refinement.arm(RANDOM),
        refinement.arm(PLAIN),
    )
    resolved = first.held_out.count
    if random is not None and resolved <= random.held_out.count:
        return "Not better than images of the mere classes."
    if plain is not None and resolved <= plain.held_out.count:
        return "Not better than retraining without images."
    if first.p_against_random is not None and first.p_against_random > CERTAIN:
        return "Better than images of the mere classes, but that may be chance."
    return ""


def _no_help(arm: RefinedArm) -> str:
    """Return that a refinement does not help, which is said before anything else; nothing if it does."""
    n_lost = arm.clean.total - arm.clean.count
    if arm.share == 0.0:
        return "No help here: even a small step towards these images loses right samples, so the layer stays as it is."
    if n_lost and n_lost >= arm.failure.count:
        return f"No help here: of the test samples it loses {n_lost} right ones and resolves {count(arm.failure.count, 'failure')}."
    return ""


def set_sentence(refinement: Refinement) -> str:
    first = refinement.arms[0]
    way = "" if first.share is None else f"; the layer goes {percent(first.share)} of the way"
    return (
        f"{count(first.n_images, 'image')} from {count(len(first.prompts), 'prompt')}; together they count "
        f"{first.debug_weight:g} times as much as all training samples (lambda){way}."
    )


def name_lines(refinement: Refinement, most: int = 3) -> Iterator[str]:
    """Yield what the seed failures of every class show, commonest first."""
    for own in by_class_and_kind(refinement.names):
        shown = ", ".join(
            f"{one.value} ({one.n_failures}; {one.n_right_shown} of the others)"
            for one in own[:most]
        )
        counted = f"{count(own[0].n_seed, 'failure')}; {own[0].n_right:,} others"
        yield f"{own[0].class_name}, {own[0].kind} ({counted}): {shown}"


def share_text(share: Share) -> str:
    """Return a rate with its interval and counts, a dash where nothing was counted.

    >>> share_text(Share.of(9, 10))
    '90 % (60–98) 9/10'
    """
    if not share.total:
        return "–"
    low, high = 100 * share.interval.low, 100 * share.interval.high
    return f"{100 * share.value:.0f} % ({low:.0f}–{high:.0f}) {share.count}/{share.total}"


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(titles), *[list(row) for row in rows]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(titles))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as Markdown; a bar inside a cell does not break it."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (titles, *rows)]
    head, *body = [f"| {' | '.join(line)} |" for line in cells]
    return [head, f"|{'---|' * len(titles)}", *body]


def arm_rows(refinement: Refinement) -> list[list[str]]:
    return [
        [arm.arm, str(arm.n_images), *(share_text(getattr(arm, field)) for _, field in COLUMNS)]
        for arm in refinement.arms
    ]


def arm_titles() -> list[str]:
    return ["arm", "images", *[title for title, _ in COLUMNS]]


def refinement_lines(refinement: Refinement) -> Iterator[str]:
    yield headline(refinement)
    yield set_sentence(refinement)
    yield from (f"  {line}" for line in name_lines(refinement))
    yield from text_table(arm_titles(), arm_rows(refinement))
    yield LEGEND
    yield from [rejected_sentence(refinement.rejected)] if refinement.rejected else []
    yield from refinement.notes


def rejected_sentence(rejected: Mapping[str, int]) -> str:
    """Return which quality checks rejected images, nothing if none did."""
    return (
        f"Rejected images: {', '.join(f'{check} {number}' for check, number in rejected.items())}."
        if rejected
        else ""
    )


def family_headline(family: FamilyRefinement) -> str:
    shared, random = family.shared, family.shared_random
    whose = "all models (type 1)" if family.source is None else f"{family.source} alone (type 2)"
    begun = f"One set of images, from the failures of {whose},"
    if not shared.total:
        return f"{begun} was measured, but the models' own refinements resolve no held-out failure."
    relative = (
        ""
        if family.relative is None
        else f"; it resolves {percent(family.relative)} as many failures as they do"
    )
    return (
        f"{begun} resolves {shared.count} of the {shared.total} held-out failures that the models' own refinements resolve "
        f"({percent(shared.value)}, {interval(shared.interval)}){relative}. Images of the mere classes resolve {random.count} "
        f"of them ({percent(random.value)})."
    )


FAMILY_TITLES = (
    "model",
    "test before",
    "own",
    "collective",
    "seed: own",
    "collective",
    "held-out: own",
    "collective",
    "mere classes",
    "own and collective",
    "clean",
)


def family_rows(family: FamilyRefinement) -> list[list[str]]:
    return [[model.name, *map(share_text, family_shares(model))] for model in family.models]


def family_shares(model: RefinedMember) -> tuple[Share, ...]:
    test, seed, held = (model.figures[place] for place in (TEST, SEED, HELD_OUT))
    resolved = (held.resolved_individual, held.resolved_collective, held.resolved_random)
    return (
        test.before,
        test.individual,
        test.collective,
        seed.resolved_individual,
        seed.resolved_collective,
        *resolved,
        held.shared,
        test.clean_collective,
    )


def shared_lines(family: FamilyRefinement, most: int = 3) -> Iterator[str]:
    """Yield what all models fail on before any refinement, and what these failures show."""
    common = family.common
    if common is None or not common.test.total:
        return
    yield (
        f"All {len(family.models)} models fail on {common.test.count} of the {common.test.total} test samples that any of them "
        f"fails on ({percent(common.test.value)}, {interval(common.test.interval)})."
    )
    for kind in dict.fromkeys(one.kind for one in common.values):
        shown = [one for one in common.values if one.kind == kind][:most]
        listed = ", ".join(f"{one.value} {percent(one.share.value)}" for one in shown)
        yield f"Of the {common.n_seed} failures of the discovery half that all share, by {kind}: {listed}."


def family_lines(family: FamilyRefinement) -> Iterator[str]:
    yield family_headline(family)
    yield from shared_lines(family)
    yield from text_table(FAMILY_TITLES, family_rows(family))
    yield FAMILY_LEGEND
    yield from [rejected_sentence(family.rejected)] if family.rejected else []
    yield from (f"{model.name}: {note}" for model in family.models for note in model.notes)
    yield from family.notes


PAGE, TEXT, DATA, SHEET = "refinement.html", "refinement.md", "refinement.json", "refinement.png"
HEAD_FILE = "refined_head.safetensors"
CELL_SIDE = 112
MAX_ROWS = 24
ALT = "The first generated images of every prompt that was trained on"


def write_refinement(refined: RefinedProject, folder: Path) -> tuple[Path, ...]:
    """Write a refinement into a folder: page, Markdown, record, contact sheet and last layer; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    record, sheet = refined.refinement, contact_sheet(refined.shown)
    contents: dict[str, bytes | Image.Image] = {
        PAGE: refinement_page(record, sheet).encode(),
        TEXT: refinement_markdown(record).encode(),
        DATA: (record.model_dump_json(indent=2) + "\n").encode(),
        HEAD_FILE: head_bytes(refined.head, refined.class_names),
    }
    return written(folder, contents | ({} if sheet is None else {SHEET: sheet}))


def write_refined_family(refined: RefinedProjects, folder: Path) -> tuple[Path, ...]:
    """Write a collective refinement into a folder in the same way, with the last layer of every model.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    record, sheet = refined.refinement, contact_sheet(refined.shown)
    lines = [
        "# Collective refinement",
        "",
        family_headline(record),
        "",
        *[f"- {line}" for line in shared_lines(record)],
        "",
        *markdown_table(FAMILY_TITLES, family_rows(record)),
        "",
        FAMILY_LEGEND,
    ]
    contents: dict[str, bytes | Image.Image] = {
        PAGE: family_page(refined, sheet).encode(),
        TEXT: ("\n".join(lines) + "\n").encode(),
        DATA: (record.model_dump_json(indent=2) + "\n").encode(),
    }
    contents |= {
        f"{name}_head.safetensors": head_bytes(head, refined.class_names[name])
        for name, head in refined.heads.items()
    }
    return written(folder, contents | ({} if sheet is None else {SHEET: sheet}))


def contact_sheet(shown: Mapping[str, Sequence[Image.Image]]) -> Image.Image | None:
    """Return the first images of every prompt, one row a prompt; None if there are none."""
    rows = [(prompt, list(images)) for prompt, images in shown.items() if images][:MAX_ROWS]
    if not rows:
        return None
    width = max(len(images) for _, images in rows)
    cells = [[*images, *[None] * (width - len(images))] for _, images in rows]
    return labelled_grid(
        cells,
        row_names=[prompt for prompt, _ in rows],
        column_names=[""] * width,
        cell_side=CELL_SIDE,
    )


def refinement_page(record: Refinement, sheet: Image.Image | None) -> str:
    """Return a refinement as one HTML page without outside references."""
    chart = [
        (arm.arm, arm.held_out.interval.low, arm.held_out.value, arm.held_out.interval.high)
        for arm in record.arms
    ]
    rows = [[arm.arm, f"<td>{arm.n_images}</td>", *_cells(arm)] for arm in record.arms]
    generated = [
        [
            one.prompt,
            text_cell(one.class_name),
            text_cell(f"{one.n_kept} of {one.n_asked}"),
            text_cell(f"{one.weight:.2f}"),
        ]
        for one in record.arms[0].prompts
    ]
    return small_page(
        f"{record.name}: refined with generated images",
        [
            paragraph(headline(record)),
            paragraph(set_sentence(record)),
            table(arm_titles(), rows, caption=LEGEND),
            f"<figure>{interval_chart(chart, title='Held-out failures resolved')}</figure>"
            if record.arms[0].held_out.total
            else "",
            *[paragraph(f"{arm.arm}: {arm.note}.") for arm in record.arms],
            "<h2>What failures show</h2>",
            *[paragraph(line) for line in name_lines(record)],
            "<h2>What was generated</h2>",
            table(["prompt", "class", "images", "share of the weight"], generated),
            "" if sheet is None else figure(sheet, alt=ALT),
            paragraph(rejected_sentence(record.rejected)),
            *[paragraph(note) for note in record.notes],
        ],
    )


def refinement_markdown(record: Refinement) -> str:
    lines = [
        f"# {record.name}: refined with generated images",
        "",
        headline(record),
        "",
        set_sentence(record),
        "",
        *markdown_table(arm_titles(), arm_rows(record)),
        "",
        LEGEND,
        "",
        *[f"- {arm.arm}: {arm.note}" for arm in record.arms],
        "",
        "## What failures show",
        "",
        *[f"- {line}" for line in name_lines(record)],
        "",
        rejected_sentence(record.rejected),
        *[f"- {note}" for note in record.notes],
    ]
    return "\n".join(lines).rstrip() + "\n"


def family_page(refined: RefinedProjects, sheet: Image.Image | None) -> str:
    """Return a collective refinement as one HTML page without outside references."""
    record = refined.refinement
    rows = [[model.name, *map(share_cell, family_shares(model))] for model in record.models]
    names = [model.name for model in record.models]
    return small_page(
        f"{len(names)} classifiers, one set of images",
        [
            paragraph(family_headline(record)),
            table(FAMILY_TITLES, rows, caption=FAMILY_LEGEND),
            "<h2>Shared failures before</h2>",
            *[paragraph(line) for line in shared_lines(record)],
            f"<figure>{heat_map(names, record.overlaps, title='Intersection over union')}</figure>",
            "" if sheet is None else figure(sheet, alt=ALT),
            paragraph(rejected_sentence(record.rejected)),
            *[
                paragraph(f"{model.name}: {note}")
                for model in record.models
                for note in model.notes
            ],
            *[paragraph(note) for note in record.notes],
        ],
    )


def _cells(arm: RefinedArm) -> list[str]:
    return [share_cell(getattr(arm, field)) for _, field in COLUMNS]
