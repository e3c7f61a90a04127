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

from weakspot.app.asking_generator import Answer
from weakspot.app.model_answers import storable
from weakspot.core.drawn import PASS, DrawnPicture, PictureOrder
from weakspot.generate.fingerprint import Fingerprint, fingerprint_of
from weakspot.generate.gate import (
    FAILED,
    NEAR_DUPLICATE,
    NOT_FINITE,
    OFF_CLASS,
    OWN_GATES,
    WRONG_SIZE,
    Gate,
    GateMemory,
    is_rejected,
)
from weakspot.media.pixels import to_rgb
from weakspot.store.drawings import Drawing, Drawings, PictureLook

PNG_EFFORT = 1
_SHOWN = 200


@dataclass(kw_only=True, eq=False)
class Sheet:
    """One order on its way into the store.

    Args:
        order: what was asked for.
        picture: RGB; None if none came.
        data: the picture as it is stored already; None if it is new.
        parents: ids of the samples that it was made from.
        verdicts: what is said of it so far, the generator's own words first.
    """

    order: PictureOrder
    picture: Image.Image | None = None
    data: bytes | None = None
    parents: tuple[str, ...] = ()
    verdicts: dict[str, str] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)
    fingerprint: Fingerprint | None = None

    @classmethod
    def of(cls, answer: Answer) -> "Sheet":
        """Return the sheet of what a generator gave; whatever is wrong with it is a verdict."""
        if answer.made is None:
            return cls(order=answer.order, verdicts={FAILED: answer.failure})
        sheet = cls(order=answer.order)
        try:
            sheet.parents = tuple(storable(str(parent)) for parent in answer.made.parents)
            sheet.verdicts = {storable(str(name)): storable(str(said))[:_SHOWN] for name, said in answer.made.verdicts.items()}
            sheet._take(answer.made.picture)
        except Exception as error:  # noqa: BLE001 - a generator of another package may give anything
            sheet.picture = None
            sheet.verdicts[FAILED] = f"not a picture: {type(error).__name__}: {storable(str(error))[:_SHOWN]}"
        return sheet

    @classmethod
    def again(cls, drawn: DrawnPicture, drawings: Drawings) -> "Sheet":
        """Return the sheet of a stored picture that is judged anew; what the generator said of it stays."""
        data, picture = drawings.data(drawn), drawings.picture(drawn)
        own = {name: said for name, said in drawn.verdicts.items() if name not in OWN_GATES}
        return cls(order=drawn.order, picture=picture, data=data, parents=drawn.parents, verdicts=own, size=picture.size)

    def say(self, gate: str, said: str) -> None:
        """Add a verdict; a rejection that is there already stays."""
        if self.verdicts.get(gate, PASS) == PASS:
            self.verdicts[gate] = said

    def _take(self, picture: Image.Image) -> None:
        picture.load()
        self.size = picture.size
        if min(picture.size) < 1:
            return
        if picture.mode == "F" and not np.isfinite(np.asarray(picture)).all():
            self.say(NOT_FINITE, "some pixels are not finite numbers")
        self.picture = to_rgb(picture)[0]


class Developing:
    """Judges, encodes and stores sheets in a thread of its own, batch after batch in the order in which they come.

    Leaving it waits for the batch that is under way, also after an error or an interruption.

    Args:
        drawings: the store; its lock must be held.
        generator_id: who draws.
        memory: of the gate.
        done: told every record that was stored.
    """

    def __init__(self, drawings: Drawings, *, generator_id: str, memory: GateMemory, done: Callable[[DrawnPicture], None]) -> None:
        self._drawings = drawings
        self._generator_id = generator_id
        self._memory = memory
        self._gate: Gate = memory.gate
        self._done = done
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="weakspot-developing")
        self._under_way: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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
        for drawn in self._drawings.add_all([self._drawing(sheet) for sheet in sheets]):
            self._done(drawn)

    def _judge(self, sheets: Sequence[Sheet]) -> None:
        for sheet in sheets:
            if FAILED not in sheet.verdicts:
                sheet.say(WRONG_SIZE, self._memory.size_verdict(sheet.size))
            if sheet.picture is not None:
                sheet.fingerprint = fingerprint_of(sheet.picture)
                for gate, said in self._gate.look(sheet.picture).items():
                    sheet.say(gate, said)
        self._compare_with_classes([sheet for sheet in sheets if not is_rejected(sheet.verdicts)])
        for sheet in sheets:
            if sheet.fingerprint is not None and not is_rejected(sheet.verdicts):
                sheet.say(NEAR_DUPLICATE, self._memory.copy_verdict(sheet.order, sheet.fingerprint))
                if not is_rejected(sheet.verdicts):
                    self._memory.keep(sheet.order, sheet.fingerprint)

    def _compare_with_classes(self, sheets: Sequence[Sheet]) -> None:
        if self._gate.off_class is None:
            return
        pictures = [sheet.picture for sheet in sheets if sheet.picture is not None]
        for sheet, said in zip(
            sheets, self._gate.off_class.verdicts(pictures, [sheet.order.class_name for sheet in sheets]), strict=True
        ):
            sheet.say(OFF_CLASS, said)

    def _drawing(self, sheet: Sheet) -> Drawing:
        data = sheet.data if sheet.data is not None or sheet.picture is None else encoded(sheet.picture)
        drawn = DrawnPicture(
            order=sheet.order,
            generator_id=self._generator_id,
            content_hash=hashlib.sha256(data).hexdigest() if data is not None else "",
            parents=sheet.parents,
            verdicts=sheet.verdicts,
        )
        text = sheet.fingerprint.text if sheet.fingerprint is not None else ""
        return Drawing(drawn=drawn, data=data, look=PictureLook(gate=self._gate.identity, fingerprint=text, size=sheet.size))


def encoded(picture: Image.Image) -> bytes:
    """Return a picture as PNG, the same bytes for the same pixels."""
    stream = BytesIO()
    Image.frombytes("RGB", picture.size, picture.tobytes()).save(stream, "PNG", compress_level=PNG_EFFORT, compress_type=zlib.Z_RLE)
    return stream.getvalue()


def remembered(drawings: Drawings, generator_id: str, gate: Gate) -> GateMemory:
    """Return what the gate saw of a generator's pictures so far, read from the store."""
    memory, identity = GateMemory(gate=gate), gate.identity
    for drawing in drawings.all():
        drawn, look = drawing.drawn, drawing.look
        if drawn.generator_id != generator_id or look.gate != identity or FAILED in drawn.verdicts:
            continue
        memory.size_verdict(look.size)
        fingerprint = Fingerprint.from_text(look.fingerprint)
        if fingerprint is not None and drawn.is_kept:
            memory.keep(drawn.order, fingerprint)
    return memory
