"""The HiBug protocol on the paper's own data: lipstick on CelebA, products of RPC, ten classes of ImageNet, problems of dcbench."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import ByteArray, FloatArray, IntArray, generator
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split
from weakspot.core.dataset import Task as DataTask
from weakspot.core.roles import Embedder
from weakspot.data.images import decode_image
from weakspot_lab.reproduce.dcbench_files import DCBENCH
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.hibug.dcbench import dcbench_steps
from weakspot_lab.reproduce.hibug.measuring import measure_selection, measure_slices
from weakspot_lab.reproduce.hibug.tasks import PLAN, Task, TaskName
from weakspot_lab.reproduce.labelled_files import IMAGENET, RPC, LabelledFile, read_files
from weakspot_lab.reproduce.photographs import CELEBA, open_embedder, read_celeba
from weakspot_lab.reproduce.protocol import Context, Step, StepResult
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.scenes.networks import train_on

SETS = (DCBENCH, CELEBA, RPC, IMAGENET)
NAMES: Mapping[str, TaskName] = {CELEBA.name: "two", RPC.name: "many", IMAGENET.name: "few"}
SIDE, WIDTH, EPOCHS, BATCH = 64, 32, 20, 32
MAJORITY = 0.9
SECONDS = 8 * 3600.0


@dataclass(frozen=True, kw_only=True, eq=False)
class PhotographWorld:
    """Photographs as small pixels, with their embeddings.

    Args:
        dataset: the samples, without predictions.
        images: pixels [n, h, w, 3].
        embeddings: joint embeddings [n, d].
    """

    dataset: Dataset
    images: ByteArray
    embeddings: FloatArray

    def rows(self, *splits: Split) -> IntArray:
        return self.dataset.rows_of(*splits)


def given_steps(request: ReproduceRequest, found: DataSet) -> tuple[Step, ...]:
    """Return Table 1 on dcbench, otherwise slices and selection of the task that a data set is for.

    Generation needs a text-to-image model and is left out.
    """
    if found is DCBENCH:
        return dcbench_steps(request)
    name = NAMES[found.name]
    return (
        Step(name=f"slices-{name}", seconds=SECONDS, work=partial(_slices, found=found)),
        Step(name=f"selection-{name}", seconds=SECONDS, work=partial(_selection, found=found)),
    )


def _slices(context: Context, found: DataSet) -> StepResult:
    given_task(context, found)
    return measure_slices(context, NAMES[found.name])


def _selection(context: Context, found: DataSet) -> StepResult:
    given_task(context, found)
    return measure_selection(context, NAMES[found.name])


def given_task(context: Context, found: DataSet) -> Task:
    """Return the task on photographs; its network is trained once a process."""
    name = NAMES[found.name]
    return context.shared(f"task {name}", lambda: _made(context, found))


def _made(context: Context, found: DataSet) -> Task:
    request = context.request
    names, files = _files(request, found, context.seed_of("celeba"))
    embedder = open_embedder(request.models)
    world = photograph_world(names, files, embedder, side=request.pick(SIDE, 32))
    plan = replace(PLAN, width=request.pick(WIDTH, 8), epochs=request.pick(EPOCHS, 2))
    return Task(
        name=NAMES[found.name],
        world=world,
        assistants=Assistants(embed_texts=embedder.embed_texts if embedder.has_text else None),
        plan=plan,
        network=train_on(world, plan),
    )


def _files(
    request: ReproduceRequest, found: DataSet, seed: int
) -> tuple[tuple[str, ...], Sequence[LabelledFile]]:
    assert request.data is not None
    if found is not CELEBA:
        read = read_files(found, request.data, request.out)
        return read.class_names, _with_pool(read.files, seed)
    return lipstick_files(request.data, seed)


def lipstick_files(folder: Path, seed: int) -> tuple[tuple[str, ...], list[LabelledFile]]:
    """Return CelebA with lipstick as the label: half of the training images are the pool, and few of the rest go against gender."""
    images = read_celeba(folder, label="Wearing_Lipstick", attribute="Male")
    draws = generator(seed, "hibug", "celeba")
    in_pool = draws.random(len(images.paths)) < 0.5  # noqa: PLR2004 - half
    is_usual = images.labels != images.attributes
    is_kept = is_usual | (draws.random(len(images.paths)) < (1 - MAJORITY) / MAJORITY)
    files = []
    for row, path in enumerate(images.paths):
        split = Split(str(images.splits[row]))
        if split is Split.TRAIN and in_pool[row]:
            split = Split.POOL
        if split is not Split.TRAIN or is_kept[row]:
            label = images.class_names[int(images.labels[row])]
            files.append(LabelledFile(path=path, label=label, split=split))
    return images.class_names, files


def _with_pool(files: Sequence[LabelledFile], seed: int) -> list[LabelledFile]:
    """Return files with half of the validation images as the pool, where there is none."""
    if any(one.split is Split.POOL for one in files):
        return list(files)
    in_pool = generator(seed, "hibug", "pool").random(len(files)) < 0.5  # noqa: PLR2004 - half
    return [
        replace(one, split=Split.POOL) if one.split is Split.VALIDATION and taken else one
        for one, taken in zip(files, in_pool, strict=True)
    ]


def photograph_world(
    names: tuple[str, ...], files: Sequence[LabelledFile], embedder: Embedder, *, side: int
) -> PhotographWorld:
    """Decode every photograph once: small pixels for the network, an embedding for words."""
    pixels: list[Any] = []
    vectors: list[FloatArray] = []
    for start in range(0, len(files), BATCH):
        images = [_image(one) for one in files[start : start + BATCH]]
        pixels += [np.asarray(one.resize((side, side)), dtype=np.uint8) for one in images]
        vectors.append(embedder.embed_prepared([embedder.prepare(one) for one in images]))
    return PhotographWorld(
        dataset=_table(names, files),
        images=np.stack(pixels),
        embeddings=np.concatenate(vectors),
    )


def _image(one: LabelledFile) -> Image.Image:
    image = decode_image(one.path.read_bytes()).image.convert("RGB")
    return image if one.box is None else image.crop(tuple(round(edge) for edge in one.box))  # type: ignore[arg-type]


def _table(names: tuple[str, ...], files: Sequence[LabelledFile]) -> Dataset:
    ids = pa.array([f"{place:032x}" for place in range(len(files))], pa.string())
    sizes = pa.array(np.zeros(len(files), dtype=np.int32))
    columns = {
        "sample_id": ids,
        "content_hash": ids,
        "location": pa.nulls(len(files), pa.string()),
        "key": ids,
        "split": pa.array([SPLIT_ORDER.index(one.split) for one in files], pa.int8()),
        "label": pa.array([names.index(one.label) for one in files], pa.int32()),
        "width": sizes,
        "height": sizes,
    }
    return Dataset(class_names=names, task=DataTask.SINGLE_LABEL, table=pa.table(columns))
