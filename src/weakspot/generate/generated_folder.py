"""Images of what a classifier fails on, in a folder that a repair can train on: a sub-folder a class, and a table of origins."""

import csv
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from weakspot.core.arrays import generator as named_generator
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError, RefusedPromptError
from weakspot.core.generated import GenerationRequest, GenerationResult, rejections
from weakspot.core.record import Record
from weakspot.core.roles import ChecksPrompts, Engine, ImageGenerator
from weakspot.core.run import Progress, RunRecord, no_progress
from weakspot.generate.counterfactuals import counterfactual_prompt
from weakspot.generate.own_images import Purpose
from weakspot.generate.parents import parent_seeds, with_views
from weakspot.generate.project_generator import GenerationTools
from weakspot.generate.quality import QualityCheck
from weakspot.generate.service import GeneratorService, confirm_cost, quality_check_for
from weakspot.repair.strategies.synthetic import slice_prompts
from weakspot.run.preparation import Prepared
from weakspot.run.wiring import engine_elsewhere
from weakspot.store import atomic
from weakspot.store.array_files import folder_name
from weakspot.store.csv_tables import csv_text
from weakspot.store.generated_images import GeneratedImageStore

TABLE_FILE = "metadata.csv"
REJECTED_FILE = "rejected.csv"
COLUMNS = (
    "image",
    "label",
    "prompt",
    "generator",
    "seed",
    "parents",
    "verdicts",
    "sha256",
    "synthetic",
)
REJECTED_COLUMNS = ("label", "prompt", "generator", "seed", "quality", "why")
UNFINISHED = ".unfinished"
BATCH_SIZE = 16
MAX_SEEDS = 2**31
_SET_FILE = "set.json"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


def generated_samples(
    generator: ImageGenerator,
    prompts: Mapping[str, Sequence[str]],
    folder: Path,
    *,
    n_each: int,
    seed: int,
    progress: Progress = no_progress,
    quality: QualityCheck | None = None,
    batch_size: int = BATCH_SIZE,
    engine: Engine | None = None,
    least_parents: int = 1,
) -> Path:
    """Let a generator generate, and return the folder with the images and their table `metadata.csv`.

    The table comes last: a folder without it is unfinished, and the same call goes on with it; one that is finished stays as it is.
    Images that the quality check rejects are not in the folder but in the table `rejected.csv`, with why.

    Args:
        generator: words to images.
        prompts: by class.
        folder: made if need be; it must not hold another set of images, finished or not.
        n_each: images a prompt; fewer where they are composed and there are not so many different objects.
        seed: decides the seed of every image, together with its class and prompt.
        progress: told how many images are there.
        quality: what is asked of them; None: the usual one, which compares with no class.
        batch_size: images per call of the generator.
        engine: where many images are generated; None: here.
        least_parents: fewest different objects of a user's own images that a prompt must show, if it is composed from such.

    Raises:
        ConfigError: if there is nothing to generate, or the folder cannot be taken.
        RefusedPromptError: if the generator cannot generate a prompt.
        NotEnoughDataError: if the quality check rejects every image.
    """
    if n_each < 1 or not any(prompts.values()):
        raise ConfigError(
            "There is no image to generate.", given={"n_each": n_each, "prompts": dict(prompts)}
        )
    requests = list(_requests(generator, prompts, n_each, seed, least_parents))
    if (folder / TABLE_FILE).exists():
        there = {(one.generator_id, one.request) for one in read_generated(folder)}
        if there == {(generator.generator_id, request) for request in requests}:
            # A kill may have left what it was generated in beside it.
            atomic.remove(folder / UNFINISHED)
            return folder
    _take_folder(folder, generator.generator_id, requests)
    stored_images = GeneratedImageStore(folder / UNFINISHED)
    asked = quality or QualityCheck()
    service = GeneratorService(
        generator,
        stored_images,
        quality=asked,
        batch_size=batch_size,
        progress=progress,
        engine=engine,
    )
    generated = service.generate(requests)
    if not any(one.is_kept for one in generated):
        counts = ", ".join(f"{n} {name}" for name, n in rejections(generated).items())
        fix = "Look at the images there, and at the generator's options and the quality check in [generator]."
        raise NotEnoughDataError(
            f"Not one of {len(generated)} images passes the quality check: {counts}.",
            where=str(stored_images.folder),
            fix=fix,
        )
    try:
        _export(folder, stored_images, generated)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder


def read_generated(folder: Path) -> list[GenerationResult]:
    """Return the records of a finished folder: images that are in it, then those that the quality check rejected, without their images.

    Raises:
        DataError: if there is no such table, or a row of it cannot be read.
    """
    try:
        kept = [
            GenerationResult(
                request=_order_of(row),
                generator_id=row["generator"],
                content_hash=row["sha256"],
                file=row.get("image") or row["picture"],
                parents=tuple(row["parents"].split()),
                verdicts=json.loads(row["verdicts"]),
            )
            for row in _rows(folder / TABLE_FILE)
        ]
        rejected = (
            [
                GenerationResult(
                    request=_order_of(row),
                    generator_id=row["generator"],
                    verdicts={row.get("quality") or row["gate"]: row["why"]},
                )
                for row in _rows(folder / REJECTED_FILE)
            ]
            if (folder / REJECTED_FILE).exists()
            else []
        )
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise DataError(
            f"The table of generated images cannot be read: {error}.",
            where=str(folder),
            fix="Give a folder that `weakspot generate` has finished.",
        ) from error
    return kept + rejected


def _requests(
    generator: ImageGenerator,
    prompts: Mapping[str, Sequence[str]],
    n_each: int,
    seed: int,
    least_parents: int,
) -> Iterator[GenerationRequest]:
    for class_name, own in prompts.items():
        for prompt in dict.fromkeys(own):
            chosen = parent_seeds(
                generator,
                [prompt],
                _seeds(named_generator(seed, "generated picture", class_name, prompt), n_each),
                n=n_each,
                least=least_parents,
                class_name=class_name,
            )
            yield from (
                GenerationRequest(class_name=class_name, prompt=prompt, seed=one)
                for one in with_views(generator, chosen, n_each).seeds
            )


def _seeds(random: np.random.Generator, n_each: int) -> Iterator[int]:
    """Yield seeds, `n_each` drawn at a time, so that more of them begin with the same."""
    while True:
        yield from random.integers(MAX_SEEDS, size=n_each).tolist()


def _take_folder(folder: Path, generator_id: str, requests: Sequence[GenerationRequest]) -> None:
    if (folder / TABLE_FILE).exists():
        raise ConfigError(
            "There are generated images already.",
            where=str(folder),
            fix="Choose another folder, or delete it.",
        )
    content = "\n".join([generator_id, *(request.model_dump_json() for request in requests)])
    wanted = hashlib.sha256(content.encode()).hexdigest()
    marker = folder / UNFINISHED / _SET_FILE
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        if not marker.exists():
            atomic.write_json(
                marker, {"set": wanted, "generator": generator_id, "n_images": len(requests)}
            )
    except OSError as error:
        raise _unwritable(folder, error) from error
    found = atomic.read_json(marker)
    if found.get("set") != wanted:
        raise ConfigError(
            "There are generated images already, of another set that is not finished.",
            where=str(folder),
            given={"generator": found.get("generator"), "images": found.get("n_images")},
            fix="Choose another folder, delete it, or finish that set: same prompts, numbers, seed and generator.",
        )


def _export(
    folder: Path, stored_images: GeneratedImageStore, generated: Sequence[GenerationResult]
) -> None:
    kept = [(number, one) for number, one in enumerate(generated) if one.is_kept]
    rows = [_exported(folder, stored_images, number, one) for number, one in kept]
    for class_folder in {(folder / str(row["image"])).parent for row in rows}:
        atomic.flush_to_disk(class_folder)
    rejected = [
        {
            "label": one.request.class_name,
            "prompt": one.request.prompt,
            "generator": one.generator_id,
            "seed": one.request.seed,
            "quality": one.rejected_by,
            "why": one.verdicts.get(one.rejected_by, ""),
        }
        for one in generated
        if not one.is_kept
    ]
    if rejected:
        atomic.write_bytes(folder / REJECTED_FILE, _table(REJECTED_COLUMNS, rejected))
    atomic.write_bytes(folder / TABLE_FILE, _table(COLUMNS, rows))
    atomic.remove(stored_images.folder)


def _exported(
    folder: Path, stored_images: GeneratedImageStore, number: int, generated: GenerationResult
) -> dict[str, object]:
    name = generated.request.class_name
    place = f"{name if _SAFE_NAME.fullmatch(name) else folder_name(name)}/{number:06d}.png"
    target = folder / place
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(stored_images.folder / generated.file, target)
    except OSError:  # not every file system has links
        shutil.copyfile(stored_images.folder / generated.file, target)
    return {
        "image": place,
        "label": name,
        "prompt": generated.request.prompt,
        "generator": generated.generator_id,
        "seed": generated.request.seed,
        "parents": " ".join(generated.parents),
        "verdicts": json.dumps(generated.verdicts),
        "sha256": generated.content_hash,
        "synthetic": "true",
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _order_of(row: Mapping[str, str]) -> GenerationRequest:
    return GenerationRequest(class_name=row["label"], prompt=row["prompt"], seed=int(row["seed"]))


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> bytes:
    lines = [[row[column] for column in columns] for row in rows]
    return csv_text(columns, lines, is_data=True).encode()


def _unwritable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(f"The images cannot be written: {error.strerror}.", where=str(folder))


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
