"""Pictures of what a classifier fails on, drawn into a folder that a repair can train on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weakspot.app.generated_pictures import generated_samples, read_drawn
from weakspot.app.generator_choice import build_generator
from weakspot.app.own_pictures import Purpose
from weakspot.app.project import Project
from weakspot.app.studio import confirm_cost, gate_for
from weakspot.app.wiring import engine_elsewhere
from weakspot.core.drawn import rejections
from weakspot.core.errors import ConfigError, NotEnoughDataError, RefusedPromptError
from weakspot.core.record import Record
from weakspot.core.roles import ChecksPrompts, ImageGenerator
from weakspot.repair.synthetic import slice_prompts
from weakspot.search.counterfactuals import counterfactual_prompt


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """What is to be drawn.

    Args:
        class_name: the class of the captions; empty without captions.
        captions: a person's own words; none: the names of the confirmed slices.
        n_each: pictures for every prompt.
        purpose: decides from which samples pictures are composed.
    """

    class_name: str = ""
    captions: tuple[str, ...] = ()
    n_each: int = 20
    purpose: Purpose = "train"


class GeneratedFolderFacts(Record):
    """What came of it.

    Args:
        folder: where the pictures are.
        generator_id: who drew them.
        prompts: by class.
        kept: pictures by prompt that passed the gate.
        rejected: pictures that a gate rejected, by gate.
        refused: prompts that the generator cannot draw, with why.
    """

    folder: str
    generator_id: str
    prompts: dict[str, tuple[str, ...]]
    kept: dict[str, int]
    rejected: dict[str, int]
    refused: dict[str, str]

    def lines(self) -> Iterator[str]:
        """Yield the facts in sentences."""
        for class_name, prompts in self.prompts.items():
            yield from (f"{class_name}: {self.kept.get(prompt, 0)} pictures of “{prompt}”" for prompt in prompts)
        yield from (f"Left out, “{prompt}”: {why}" for prompt, why in self.refused.items())
        if self.rejected:
            yield "Rejected: " + ", ".join(f"{number} {gate}" for gate, number in self.rejected.items()) + "."
        yield f"Pictures and their table: {self.folder}"


def generate_pictures(
    project: Project, folder: Path, request: GenerateRequest, *, run_id: str | None = None
) -> GeneratedFolderFacts:
    """Draw pictures into a new folder; one that was left unfinished by the same request is continued.

    Raises:
        ConfigError: if captions come without a class, the folder cannot be taken, or the cost is not agreed to.
        NotEnoughDataError: if there is no confirmed slice with a name.
        RefusedPromptError: if the generator can draw none of the prompts.
    """
    prepared = project.prepared()
    generator = build_generator(project.settings, project.folder, prepared, purpose=request.purpose)
    prompts, refused = _drawable(_prompts(project, request, run_id), generator)
    chosen = project.settings.generator
    n_pictures = request.n_each * sum(map(len, prompts.values()))
    if n_pictures > chosen.max_pictures:
        raise ConfigError(
            f"{n_pictures} pictures are more than the generator may be asked for.",
            where="[generator] max_pictures",
            given=chosen.max_pictures,
            fix="Raise it, or ask for fewer.",
        )
    confirm_cost(generator, n_pictures, chosen)
    gate = gate_for(chosen, embedder=prepared.embedder, class_names=prepared.samples.dataset.class_names)
    generated_samples(
        generator,
        prompts,
        folder,
        n_each=request.n_each,
        seed=project.settings.seed,
        progress=project.told("draw"),
        gate=gate,
        batch_size=chosen.batch_size,
        engine=engine_elsewhere(project.settings),
    )
    drawn = read_drawn(folder)
    return GeneratedFolderFacts(
        folder=str(folder),
        generator_id=generator.generator_id,
        prompts={name: tuple(own) for name, own in prompts.items()},
        kept=dict(Counter(one.order.prompt for one in drawn if one.is_kept)),
        rejected=rejections(drawn),
        refused=refused,
    )


def _drawable(prompts: Mapping[str, Sequence[str]], generator: ImageGenerator) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the prompts by class that a generator can draw, and why it cannot draw the others; who cannot say takes all.

    Raises:
        RefusedPromptError: if it can draw none of them.
    """
    if not isinstance(generator, ChecksPrompts):
        return {name: tuple(own) for name, own in prompts.items()}, {}
    refusals: dict[str, RefusedPromptError] = {}
    for prompt in dict.fromkeys(prompt for own in prompts.values() for prompt in own):
        try:
            generator.check_prompt(prompt)
        except RefusedPromptError as error:
            refusals[prompt] = error
    kept = {name: tuple(prompt for prompt in own if prompt not in refusals) for name, own in prompts.items()}
    if refusals and not any(kept.values()):
        raise next(iter(refusals.values()))
    return {name: own for name, own in kept.items() if own}, {prompt: error.what for prompt, error in refusals.items()}


def _prompts(project: Project, request: GenerateRequest, run_id: str | None) -> dict[str, tuple[str, ...]]:
    if request.captions:
        if not request.class_name:
            raise ConfigError("Captions need a class.", given=list(request.captions), fix="Name it with --class.")
        project.prepared().samples.dataset.class_code(request.class_name)
        return {request.class_name: tuple(counterfactual_prompt(request.class_name, caption) for caption in request.captions)}
    record = project.run_record(run_id)
    evidence = {one.slice_id: one for one in record.evidence}
    own = [found for found in record.findings() if request.class_name in ("", found.class_name)]
    prompts = slice_prompts(own, evidence)
    if not prompts:
        raise NotEnoughDataError(
            "There is no confirmed slice with a name to draw pictures of.",
            given=request.class_name or None,
            fix='Say what to draw: weakspot generate --class apple "on grass".',
        )
    return prompts
