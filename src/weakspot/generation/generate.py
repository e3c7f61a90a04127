"""Images of what a classifier fails on, generated into a folder that a repair can train on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from weakspot.core.errors import ConfigError, NotEnoughDataError, RefusedPromptError
from weakspot.core.generation_requests import GenerationResult, rejections
from weakspot.core.record import Record
from weakspot.core.roles import ChecksPrompts, ImageGenerator
from weakspot.core.run import RunRecord
from weakspot.generation.generated_folder import generated_samples, read_generated
from weakspot.generation.search.counterfactuals import counterfactual_prompt
from weakspot.generation.service.own_images import Purpose
from weakspot.generation.service.service import confirm_cost, quality_check_for
from weakspot.generation.service.tools import GenerationTools
from weakspot.pipeline.preparation import Prepared
from weakspot.pipeline.wiring import engine_elsewhere
from weakspot.repair.methods.synthetic import slice_prompts


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """What is to be generated.

    Args:
        class_name: the class of the captions; empty without captions.
        captions: a person's own words; none: the names of the confirmed slices.
        n_each: images for every prompt.
        purpose: decides from which samples images are composed.
    """

    class_name: str = ""
    captions: tuple[str, ...] = ()
    n_each: int = 20
    purpose: Purpose = "train"


class GenerateResult(Record):
    """What came of it.

    Args:
        folder: where the images are.
        generator_id: who drew them.
        prompts: by class.
        kept: images by prompt that passed the quality check.
        rejected: images that a quality check rejected, by quality check.
        refused: prompts that the generator cannot generate, with why.
        n_each: images of every prompt that were asked for; 0 in earlier records.
        parents: different samples of the user's own that the kept images show, by prompt; 0 if they are not composed.
    """

    folder: str
    generator_id: str
    prompts: dict[str, tuple[str, ...]]
    kept: dict[str, int]
    rejected: dict[str, int]
    refused: dict[str, str]
    n_each: int = 0
    parents: dict[str, int] = Field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        for class_name, prompts in self.prompts.items():
            yield from (
                f"{class_name}: {self.kept.get(prompt, 0)} images of “{prompt}”{self._whose(prompt)}"
                for prompt in prompts
            )
        yield from (f"Left out, “{prompt}”: {why}" for prompt, why in self.refused.items())
        if self.rejected:
            yield (
                "Rejected: "
                + ", ".join(f"{number} {quality}" for quality, number in self.rejected.items())
                + "."
            )
        yield f"Images and their table: {self.folder}"

    def _whose(self, prompt: str) -> str:
        n_parents = self.parents.get(prompt, 0)
        if not n_parents:
            return ""
        is_short = self.kept.get(prompt, 0) < self.n_each and not self.rejected
        more = f" ({self.n_each} were asked for, but no more can be used)" if is_short else ""
        return f", of {n_parents} different objects{more}"


def generate_images(
    tools: GenerationTools,
    folder: Path,
    request: GenerateRequest,
    *,
    record: RunRecord | None = None,
) -> GenerateResult:
    """Generate images into a new folder; one that was left unfinished by the same request is continued.

    Args:
        tools: what is needed to generate for a project.
        folder: where the images go.
        request: what is to be generated.
        record: the run whose confirmed slices are generated when the request has no captions.

    Raises:
        ConfigError: if captions come without a class, the folder cannot be taken, or the cost is not agreed to.
        NotEnoughDataError: if there is no confirmed slice with a name.
        RefusedPromptError: if the generator can generate none of the prompts.
    """
    prepared, chosen = tools.prepared, tools.settings.generator
    generator = tools.image_generator(purpose=request.purpose)
    prompts, refused = _possible_prompts(_prompts(prepared, request, record), generator)
    n_images = request.n_each * sum(map(len, prompts.values()))
    if n_images > chosen.max_images:
        raise ConfigError(
            f"{n_images} images are more than the generator may be asked for.",
            where="[generator] max_images",
            given=chosen.max_images,
            fix="Raise it, or ask for fewer.",
        )
    confirm_cost(generator, n_images, chosen)
    quality = quality_check_for(
        chosen, embedder=prepared.embedder, class_names=prepared.samples.dataset.class_names
    )
    generated_samples(
        generator,
        prompts,
        folder,
        n_each=request.n_each,
        seed=tools.settings.seed,
        progress=tools.progress,
        quality=quality,
        batch_size=chosen.batch_size,
        engine=engine_elsewhere(tools.settings),
        least_parents=chosen.least_parents,
    )
    generated = read_generated(folder)
    return GenerateResult(
        folder=str(folder),
        generator_id=generator.generator_id,
        prompts={name: tuple(own) for name, own in prompts.items()},
        kept=dict(Counter(one.request.prompt for one in generated if one.is_kept)),
        rejected=rejections(generated),
        refused=refused,
        n_each=request.n_each,
        parents=_n_parents(generated),
    )


def _n_parents(generated: Sequence[GenerationResult]) -> dict[str, int]:
    shown: dict[str, set[str]] = {}
    for one in generated:
        if one.is_kept and one.parents:
            shown.setdefault(one.request.prompt, set()).add(one.parents[0])
    return {prompt: len(names) for prompt, names in shown.items()}


def _possible_prompts(
    prompts: Mapping[str, Sequence[str]], generator: ImageGenerator
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the prompts by class that a generator can generate, and why it cannot generate the others; who cannot say takes all.

    Raises:
        RefusedPromptError: if it can generate none of them.
    """
    if not isinstance(generator, ChecksPrompts):
        return {name: tuple(own) for name, own in prompts.items()}, {}
    refusals: dict[str, RefusedPromptError] = {}
    for prompt in dict.fromkeys(prompt for own in prompts.values() for prompt in own):
        try:
            generator.check_prompt(prompt)
        except RefusedPromptError as error:
            refusals[prompt] = error
    kept = {
        name: tuple(prompt for prompt in own if prompt not in refusals)
        for name, own in prompts.items()
    }
    if refusals and not any(kept.values()):
        raise next(iter(refusals.values()))
    return {name: own for name, own in kept.items() if own}, {
        prompt: error.what for prompt, error in refusals.items()
    }


def _prompts(
    prepared: Prepared, request: GenerateRequest, record: RunRecord | None
) -> dict[str, tuple[str, ...]]:
    if request.captions:
        if not request.class_name:
            raise ConfigError(
                "Captions need a class.", given=list(request.captions), fix="Name it with --class."
            )
        prepared.samples.dataset.class_code(request.class_name)
        return {
            request.class_name: tuple(
                counterfactual_prompt(request.class_name, caption) for caption in request.captions
            )
        }
    evidence = {one.slice_id: one for one in record.evidence} if record else {}
    own = [
        found
        for found in (record.findings() if record else ())
        if request.class_name in ("", found.class_name)
    ]
    prompts = slice_prompts(own, evidence)
    if not prompts:
        raise NotEnoughDataError(
            "There is no confirmed slice with a name to generate images of.",
            given=request.class_name or None,
            fix='Say what to generate: weakspot generate --class apple "on grass".',
        )
    return prompts
