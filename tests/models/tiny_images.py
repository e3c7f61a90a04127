"""One builder for every registered image generator but those that need nothing."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from tests.models import tiny_pipelines
from tests.models.tiny_servers import ImageServer, served

from weakspot.core.generated import OwnImages
from weakspot.core.registry import part_class
from weakspot.models.endpoint.images import EndpointImageEditor
from weakspot.testing.scenes import PAINT, Scene, render


def _part(role: str, name: str, **options: object) -> Callable[[], object]:
    return lambda: part_class(role, name)(**options)


def _diffusers(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    model = tiny_pipelines.save_stable_diffusion(folder / "model", checker="passes")
    return _part("image_generators", "diffusers", model=model, device="cpu", steps=2, batch_size=2)


def _unclip(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    model = tiny_pipelines.save_unclip_from_words(folder / "model")
    return _part("image_generators", "unclip", model=model, device="cpu", steps=2, batch_size=2)


def _edit(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    written = "StableDiffusionInstructPix2PixPipeline"
    model = tiny_pipelines.save_stable_diffusion(folder / "model", written=written)
    made = _part("image_generators", "edit", model=model, device="cpu", steps=2, side=32)
    return lambda: made().with_images(OWN_SHAPES)  # type: ignore[attr-defined]


def _edit_endpoint(_folder: Path, stack: ExitStack) -> Callable[[], object]:
    made = partial(EndpointImageEditor, url=served(ImageServer, stack).url, model="tiny", side=32)
    return lambda: made(n_retries=0).with_images(OWN_SHAPES)


def _ids(class_name: str) -> list[str]:
    return [f"{class_name} {number}" for number in range(4)] if class_name else []


def _shape(sample_id: str) -> Image.Image:
    kind, _, instance = sample_id.partition(" ")
    scene = Scene(kinds=(kind,), colour="blue", size="large", instance=int(instance))
    return render(scene, side=64, marked=False)


def _none(_: str) -> None:
    return None


def _nothing(_: str) -> list[str]:
    return []


OWN_SHAPES = OwnImages(
    class_names=("disc", "star"),
    objects=_ids,
    backgrounds=_nothing,
    background_words=(),
    image=_shape,
    mask=_none,
    digest="shapes",
)


def _shapes(folder: Path) -> Path:
    for kind in ("disc", "star"):
        (folder / "shapes" / kind).mkdir(parents=True, exist_ok=True)
        for instance in range(3):
            scene = Scene(kinds=(kind,), colour="blue", size="large", instance=instance)
            image = render(scene, side=128, marked=False)
            image.save(folder / "shapes" / kind / f"{instance}.png")
            paint = np.linalg.norm(np.asarray(image).astype(float) - PAINT["blue"], axis=2) < 60
            Image.fromarray(paint).save(folder / "shapes" / kind / f"{instance}_mask.png")
    return folder / "shapes"


def _compose(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    return _part("image_generators", "compose", images=str(_shapes(folder)), side=64)


BUILDERS = {
    ("image_generators", "compose"): _compose,
    ("image_generators", "diffusers"): _diffusers,
    ("image_generators", "edit"): _edit,
    ("image_generators", "edit-endpoint"): _edit_endpoint,
    ("image_generators", "unclip"): _unclip,
}
