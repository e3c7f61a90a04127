"""What comes from a generator is judged, encoded and stored, while the generator works on the next batch."""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from types import TracebackType
from typing import Self

import numpy as np
from PIL import Image

from weakspot.core.generation_requests import PASS, GenerationRequest, GenerationResult
from weakspot.generation.fingerprint import Fingerprint, fingerprint_of
from weakspot.generation.quality import (
    FAILED,
    NEAR_DUPLICATE,
    NOT_FINITE,
    OFF_CLASS,
    OWN_CHECKS,
    WRONG_SIZE,
    QualityCheck,
    QualityMemory,
    is_rejected,
)
from weakspot.generation.service.requests import Answer
from weakspot.media.pixels import to_rgb
from weakspot.pipeline.models.answers import storable
from weakspot.store.generated_images import GeneratedImageStore, ImageLook, StoredImage

PNG_EFFORT = 1
_SHOWN = 200


@dataclass(kw_only=True, eq=False)
class Sheet:
    """One order on its way into the store.

    Args:
        order: what was asked for.
        image: RGB; None if none came.
        data: the image as it is stored already; None if it is new.
        parents: ids of the samples that it was made from.
        verdicts: what is said of it so far, the generator's own words first.
    """

    request: GenerationRequest
    image: Image.Image | None = None
    data: bytes | None = None
    parents: tuple[str, ...] = ()
    verdicts: dict[str, str] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)
    fingerprint: Fingerprint | None = None

    @classmethod
    def of(cls, answer: Answer) -> "Sheet":
        """Return the sheet of what a generator gave; whatever is wrong with it is a verdict."""
        if answer.made is None:
            return cls(request=answer.request, verdicts={FAILED: answer.failure})
        sheet = cls(request=answer.request)
        try:
            sheet.parents = tuple(storable(str(parent)) for parent in answer.made.parents)
            sheet.verdicts = {
                storable(str(name)): storable(str(said))[:_SHOWN]
                for name, said in answer.made.verdicts.items()
            }
            sheet._take(answer.made.image)
        except Exception as error:  # noqa: BLE001 - a generator of another package may give anything
            sheet.image = None
            sheet.verdicts[FAILED] = (
                f"not an image: {type(error).__name__}: {storable(str(error))[:_SHOWN]}"
            )
        return sheet

    @classmethod
    def again(cls, generated: GenerationResult, stored_images: GeneratedImageStore) -> "Sheet":
        """Return the sheet of a stored image that is judged anew; what the generator said of it stays."""
        data, image = stored_images.data(generated), stored_images.image(generated)
        own = {name: said for name, said in generated.verdicts.items() if name not in OWN_CHECKS}
        return cls(
            request=generated.request,
            image=image,
            data=data,
            parents=generated.parents,
            verdicts=own,
            size=image.size,
        )

    def say(self, quality: str, said: str) -> None:
        """Add a verdict; a rejection that is there already stays."""
        if self.verdicts.get(quality, PASS) == PASS:
            self.verdicts[quality] = said

    def _take(self, image: Image.Image) -> None:
        image.load()
        self.size = image.size
        if min(image.size) < 1:
            return
        if image.mode == "F" and not np.isfinite(np.asarray(image)).all():
            self.say(NOT_FINITE, "some pixels are not finite numbers")
        self.image = to_rgb(image)[0]


class Developing:
    """Judges, encodes and stores sheets in a thread of its own, batch after batch in the order in which they come.

    Leaving it waits for the batch that is under way, also after an error or an interruption.

    Args:
        generated images: the store; its lock must be held.
        generator_id: who generates.
        memory: of the quality check.
        done: told every record that was stored.
    """

    def __init__(
        self,
        stored_images: GeneratedImageStore,
        *,
        generator_id: str,
        memory: QualityMemory,
        done: Callable[[GenerationResult], None],
    ) -> None:
        self._stored_images = stored_images
        self._generator_id = generator_id
        self._memory = memory
        self._quality: QualityCheck = memory.quality
        self._done = done
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="weakspot-developing")
        self._under_way: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=True)
        if kind is None:
            self._wait()

    def take(self, sheets: Sequence[Sheet]) -> None:
        """Begin with some sheets as soon as those before are stored."""
        self._wait()
        self._under_way = self._thread.submit(self._develop, list(sheets))

    def _wait(self) -> None:
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()

    def _develop(self, sheets: list[Sheet]) -> None:
        self._judge(sheets)
        for generated in self._stored_images.add_all([self._store(sheet) for sheet in sheets]):
            self._done(generated)

    def _judge(self, sheets: Sequence[Sheet]) -> None:
        for sheet in sheets:
            if FAILED not in sheet.verdicts:
                sheet.say(WRONG_SIZE, self._memory.size_verdict(sheet.size))
            if sheet.image is not None:
                sheet.fingerprint = fingerprint_of(sheet.image)
                for quality, said in self._quality.look(sheet.image).items():
                    sheet.say(quality, said)
        self._compare_with_classes([sheet for sheet in sheets if not is_rejected(sheet.verdicts)])
        for sheet in sheets:
            if sheet.fingerprint is not None and not is_rejected(sheet.verdicts):
                sheet.say(
                    NEAR_DUPLICATE, self._memory.copy_verdict(sheet.request, sheet.fingerprint)
                )
                if not is_rejected(sheet.verdicts):
                    self._memory.keep(sheet.request, sheet.fingerprint)

    def _compare_with_classes(self, sheets: Sequence[Sheet]) -> None:
        if self._quality.off_class is None:
            return
        images = [sheet.image for sheet in sheets if sheet.image is not None]
        for sheet, said in zip(
            sheets,
            self._quality.off_class.verdicts(
                images, [sheet.request.class_name for sheet in sheets]
            ),
            strict=True,
        ):
            sheet.say(OFF_CLASS, said)

    def _store(self, sheet: Sheet) -> StoredImage:
        data = sheet.data if sheet.data is not None or sheet.image is None else encoded(sheet.image)
        generated = GenerationResult(
            request=sheet.request,
            generator_id=self._generator_id,
            content_hash=hashlib.sha256(data).hexdigest() if data is not None else "",
            parents=sheet.parents,
            verdicts=sheet.verdicts,
        )
        text = sheet.fingerprint.text if sheet.fingerprint is not None else ""
        return StoredImage(
            generated=generated,
            data=data,
            look=ImageLook(quality=self._quality.identity, fingerprint=text, size=sheet.size),
        )


def encoded(image: Image.Image) -> bytes:
    """Return an image as PNG, the same bytes for the same pixels."""
    stream = BytesIO()
    Image.frombytes("RGB", image.size, image.tobytes()).save(
        stream, "PNG", compress_level=PNG_EFFORT, compress_type=zlib.Z_RLE
    )
    return stream.getvalue()


def remembered(
    stored_images: GeneratedImageStore, generator_id: str, quality: QualityCheck
) -> QualityMemory:
    memory, identity = QualityMemory(quality=quality), quality.identity
    for stored in stored_images.all():
        generated, look = stored.generated, stored.look
        if (
            generated.generator_id != generator_id
            or look.quality != identity
            or FAILED in generated.verdicts
        ):
            continue
        memory.size_verdict(look.size)
        fingerprint = Fingerprint.from_text(look.fingerprint)
        if fingerprint is not None and generated.is_kept:
            memory.keep(generated.request, fingerprint)
    return memory
