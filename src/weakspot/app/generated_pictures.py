"""A generator's pictures as a folder: one sub-folder a class, and a table that says what each was made from."""

import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path

from weakspot.app.studio import Studio
from weakspot.core.drawn import DrawnPicture, PictureOrder, rejections
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.roles import Engine, ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.core.seeding import generator as named_generator
from weakspot.generate.gate import Gate
from weakspot.store import atomic
from weakspot.store.drawings import Drawings
from weakspot.store.names import folder_name

TABLE_FILE = "metadata.csv"
REJECTED_FILE = "rejected.csv"
COLUMNS = ("picture", "label", "prompt", "generator", "seed", "parents", "verdicts", "sha256", "synthetic")
REJECTED_COLUMNS = ("label", "prompt", "generator", "seed", "gate", "why")
UNFINISHED = ".unfinished"
BATCH_SIZE = 16
MOST_SEEDS = 2**31
_SET_FILE = "set.json"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


def generated_samples(  # noqa: PLR0913 - what is drawn, where to, and the gate
    generator: ImageGenerator,
    prompts: Mapping[str, Sequence[str]],
    folder: Path,
    *,
    n_each: int,
    seed: int,
    progress: Progress = no_progress,
    gate: Gate | None = None,
    batch_size: int = BATCH_SIZE,
    engine: Engine | None = None,
) -> Path:
    """Let a generator draw, and return the folder with the pictures and their table `metadata.csv`.

    The table comes last: a folder without it is unfinished, and the same call goes on with it; one that is finished stays as it is.
    Pictures that the gate rejects are not in the folder but in the table `rejected.csv`, with why.

    Args:
        generator: words to pictures.
        prompts: by class.
        folder: made if need be; it must not hold another set of pictures, finished or not.
        n_each: pictures a prompt.
        seed: decides the seed of every picture, together with its class and prompt.
        progress: told how many pictures are there.
        gate: what is asked of them; None: the usual one, which compares with no class.
        batch_size: pictures per call of the generator.
        engine: where many pictures are drawn; None: here.

    Raises:
        ConfigError: if there is nothing to draw, or the folder cannot be taken.
        RefusedPromptError: if the generator cannot draw a prompt.
        NotEnoughDataError: if the gate rejects every picture.
    """
    if n_each < 1 or not any(prompts.values()):
        raise ConfigError("There is no picture to generate.", given={"n_each": n_each, "prompts": dict(prompts)})
    orders = list(_orders(prompts, n_each, seed))
    if _is_finished(folder, generator.generator_id, orders):
        atomic.remove(folder / UNFINISHED)
        return folder
    _take_folder(folder, generator.generator_id, orders)
    drawings = Drawings(folder / UNFINISHED)
    asked = gate or Gate()
    studio = Studio(generator, drawings, gate=asked, batch_size=batch_size, progress=progress, engine=engine)
    drawn = studio.draw(orders)
    if not any(one.is_kept for one in drawn):
        counts = ", ".join(f"{n} {name}" for name, n in rejections(drawn).items())
        fix = "Look at the pictures there, and at the generator's options and the gate in [generator]."
        raise NotEnoughDataError(
            f"Not one of {len(drawn)} pictures passes the gate: {counts}.", where=str(drawings.folder), fix=fix
        )
    try:
        _export(folder, drawings, drawn)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder


def read_drawn(folder: Path) -> list[DrawnPicture]:
    """Return the records of a finished folder: pictures that are in it, then those that the gate rejected, without their pictures.

    Raises:
        DataError: if there is no such table, or a row of it cannot be read.
    """
    try:
        kept = [_kept_record(row) for row in _rows(folder / TABLE_FILE)]
        rejected = [_rejected_record(row) for row in _rows(folder / REJECTED_FILE)] if (folder / REJECTED_FILE).exists() else []
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise DataError(
            f"The table of generated pictures cannot be read: {error}.",
            where=str(folder),
            fix="Give a folder that `weakspot generate` has finished.",
        ) from error
    return kept + rejected


def _orders(prompts: Mapping[str, Sequence[str]], n_each: int, seed: int) -> Iterator[PictureOrder]:
    for class_name, own in prompts.items():
        for prompt in dict.fromkeys(own):
            seeds = named_generator(seed, "generated picture", class_name, prompt).integers(MOST_SEEDS, size=n_each)
            yield from (PictureOrder(class_name=class_name, prompt=prompt, seed=int(one)) for one in seeds)


def _is_finished(folder: Path, generator_id: str, orders: Sequence[PictureOrder]) -> bool:
    """Return whether the folder holds exactly this set; a kill may have left what it was drawn in beside it."""
    if not (folder / TABLE_FILE).exists():
        return False
    drawn = read_drawn(folder)
    return {(generator_id, order) for order in orders} == {(one.generator_id, one.order) for one in drawn}


def _take_folder(folder: Path, generator_id: str, orders: Sequence[PictureOrder]) -> None:
    if (folder / TABLE_FILE).exists():
        raise ConfigError("There are generated pictures already.", where=str(folder), fix="Choose another folder, or delete it.")
    content = "\n".join([generator_id, *(order.model_dump_json() for order in orders)])
    wanted = hashlib.sha256(content.encode()).hexdigest()
    marker = folder / UNFINISHED / _SET_FILE
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        if not marker.exists():
            atomic.write_json(marker, {"set": wanted, "generator": generator_id, "n_pictures": len(orders)})
    except OSError as error:
        raise _unwritable(folder, error) from error
    found = atomic.read_json(marker)
    if found.get("set") != wanted:
        raise ConfigError(
            "There are generated pictures already, of another set that is not finished.",
            where=str(folder),
            given={"generator": found.get("generator"), "pictures": found.get("n_pictures")},
            fix="Choose another folder, delete it, or finish that set: same prompts, numbers, seed and generator.",
        )


def _export(folder: Path, drawings: Drawings, drawn: Sequence[DrawnPicture]) -> None:
    """Write class folders and tables, the table of pictures last, and then remove what the set was drawn in."""
    kept = [(number, one) for number, one in enumerate(drawn) if one.is_kept]
    rows = [_exported(folder, drawings, number, one) for number, one in kept]
    for class_folder in {(folder / str(row["picture"])).parent for row in rows}:
        atomic.flush_to_disk(class_folder)
    rejected = [_rejected_row(one) for one in drawn if not one.is_kept]
    if rejected:
        atomic.write_bytes(folder / REJECTED_FILE, _table(REJECTED_COLUMNS, rejected))
    atomic.write_bytes(folder / TABLE_FILE, _table(COLUMNS, rows))
    atomic.remove(drawings.folder)


def _exported(folder: Path, drawings: Drawings, number: int, drawn: DrawnPicture) -> dict[str, object]:
    name = drawn.order.class_name
    place = f"{name if _SAFE_NAME.fullmatch(name) else folder_name(name)}/{number:06d}.png"
    target = folder / place
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(drawings.folder / drawn.file, target)
    except OSError:  # not every file system has links
        shutil.copyfile(drawings.folder / drawn.file, target)
    return {
        "picture": place,
        "label": name,
        "prompt": drawn.order.prompt,
        "generator": drawn.generator_id,
        "seed": drawn.order.seed,
        "parents": " ".join(drawn.parents),
        "verdicts": json.dumps(drawn.verdicts),
        "sha256": drawn.content_hash,
        "synthetic": "true",
    }


def _rejected_row(drawn: DrawnPicture) -> dict[str, object]:
    order, gate = drawn.order, drawn.rejected_by
    return {
        "label": order.class_name,
        "prompt": order.prompt,
        "generator": drawn.generator_id,
        "seed": order.seed,
        "gate": gate,
        "why": drawn.verdicts.get(gate, ""),
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _order_of(row: Mapping[str, str]) -> PictureOrder:
    return PictureOrder(class_name=row["label"], prompt=row["prompt"], seed=int(row["seed"]))


def _kept_record(row: Mapping[str, str]) -> DrawnPicture:
    return DrawnPicture(
        order=_order_of(row),
        generator_id=row["generator"],
        content_hash=row["sha256"],
        file=row["picture"],
        parents=tuple(row["parents"].split()),
        verdicts=json.loads(row["verdicts"]),
    )


def _rejected_record(row: Mapping[str, str]) -> DrawnPicture:
    return DrawnPicture(order=_order_of(row), generator_id=row["generator"], verdicts={row["gate"]: row["why"]})


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> bytes:
    stream = StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=columns)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def _unwritable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(f"The pictures cannot be written: {error.strerror}.", where=str(folder))
