"""A generator's pictures as a folder: one sub-folder a class, and a table that says what each was made from."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from weakspot.core.errors import ConfigError
from weakspot.core.roles import GeneratedPicture, ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.core.seeding import generator as named_generator
from weakspot.store.names import folder_name

TABLE_FILE = "metadata.csv"
COLUMNS = ("picture", "label", "prompt", "generator", "seed")
BATCH_SIZE = 16
MOST_SEEDS = 2**31
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


@dataclass(frozen=True, kw_only=True)
class _Order:
    """One picture to be made."""

    class_name: str
    prompt: str
    seed: int


def generated_samples(
    generator: ImageGenerator,
    prompts: Mapping[str, Sequence[str]],
    folder: Path,
    *,
    n_each: int,
    seed: int,
    progress: Progress = no_progress,
) -> Path:
    """Let a generator draw, and return the folder with the pictures and their table `metadata.csv`.

    Args:
        generator: words to pictures.
        prompts: by class.
        folder: made if need be; it must not hold a table already.
        n_each: pictures a prompt.
        seed: decides the seed of every picture, together with its class and prompt.
        progress: told how many pictures are there.

    Raises:
        ConfigError: if there is nothing to draw, or the folder cannot be taken.
    """
    if n_each < 1 or not any(prompts.values()):
        raise ConfigError("There is no picture to generate.", given={"n_each": n_each, "prompts": dict(prompts)})
    if (folder / TABLE_FILE).exists():
        raise ConfigError("There are generated pictures already.", where=str(folder), fix="Choose another folder, or delete it.")
    orders = list(_orders(prompts, n_each, seed))
    progress(0, len(orders))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / TABLE_FILE).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=COLUMNS)
            writer.writeheader()
            for number, (order, made) in enumerate(_drawn(generator, orders)):
                writer.writerow(_saved(folder, number, order, made))
                file.flush()
                progress(number + 1, len(orders))
    except OSError as error:
        raise ConfigError(f"The pictures cannot be written: {error.strerror}.", where=str(folder)) from error
    return folder


def _orders(prompts: Mapping[str, Sequence[str]], n_each: int, seed: int) -> Iterator[_Order]:
    for class_name, own in prompts.items():
        for prompt in dict.fromkeys(own):
            seeds = named_generator(seed, "generated picture", class_name, prompt).integers(MOST_SEEDS, size=n_each)
            yield from (_Order(class_name=class_name, prompt=prompt, seed=int(one)) for one in seeds)


def _drawn(generator: ImageGenerator, orders: Sequence[_Order]) -> Iterator[tuple[_Order, GeneratedPicture]]:
    waiting = iter(orders)
    while batch := list(islice(waiting, BATCH_SIZE)):
        made = generator.generate([order.prompt for order in batch], seeds=[order.seed for order in batch])
        yield from zip(batch, made, strict=True)


def _saved(folder: Path, number: int, order: _Order, made: GeneratedPicture) -> dict[str, object]:
    name = order.class_name
    place = f"{name if _SAFE_NAME.fullmatch(name) else folder_name(name)}/{number:06d}.png"
    (folder / place).parent.mkdir(exist_ok=True)
    made.picture.save(folder / place)
    return {"picture": place, "label": name, "prompt": made.prompt, "generator": made.generator_id, "seed": made.seed}
