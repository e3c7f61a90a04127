"""Draws the images that teach the embedded text side colours, light, style and number, with their texts.

The images are made from cut-outs (the 3D emoji of an MIT-licensed package) on plain grounds and on photographs,
recoloured and filtered; none of them is kept after its embedding has been computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import attribute_images as images
import numpy as np
from PIL import Image

SEED = 20
NUISANCE_SEED = 33
N_COLOUR_IMAGES = 800
N_PER_STYLE = 28
N_PER_COUNT = 24
N_NUISANCE = 80
NUMBERS = ("one", "two", "three", "four", "five")

# Code point of the emoji and the word for it. Fruit of the demo's own data is left out on purpose.
CUTOUTS = """
1f697 car|1f698 car|1f68c bus|1f69a truck|1f6b2 bicycle|1f3cd motorcycle|1f6f4 scooter|26f5 boat|1f6e9 aeroplane|
1f681 helicopter|1f680 rocket|1f455 shirt|1f457 dress|1f456 trousers|1f9e5 coat|1f9e6 socks|1f45f shoe|1f462 boot|1f452 hat|
1f9e2 cap|1f9e3 scarf|1f392 backpack|1f45c handbag|2602 umbrella|1f388 balloon|1f338 flower|1f339 rose|1f337 tulip|
1f33b sunflower|1f33f plant|1f343 leaf|1f333 tree|1f426 bird|1f41f fish|1f415 dog|1f408 cat|1f40e horse|1f404 cow|
1f411 sheep|1f407 rabbit|1f98b butterfly|1f422 turtle|1f418 elephant|1f427 penguin|1f986 duck|1f438 frog|1f3e0 house|
1f3e2 building|1fa91 chair|1f6cb sofa|1f6cf bed|1f6aa login|1f514 bell|1f511 key|1f4d5 book|2615 cup|1f37c bottle|1f944 spoon|
1f3b8 guitar|1f3b9 piano|26bd ball|1f3c0 ball|1f381 box|1f4bc suitcase|1f4f1 phone|1f4bb laptop|1f56f candle|1f382 cake|
1f369 doughnut|1f955 carrot|1f34c banana|1f353 strawberry|1f347 grapes|2b50 star|2764 heart|1f3a9 top hat|1f576 sunglasses|
1f4a1 lamp|231a watch
"""

# File name of a photograph and what it shows.
PHOTOGRAPHS = """
astronaut.png a woman|brick.png a brick wall|camera.png a man with a camera|chelsea.png a cat|
coffee.png a cup of coffee on a table|grass.png grass|gravel.png gravel|rocket.jpg a rocket|
motorcycle_left.png a motorcycle in a garage|page.png a page of text|coins.png coins|china.jpg a temple|flower.jpg a flower|
Garden.jpg a garden|Dune.jpg sand dunes|Wood.jpg a forest|Aqua.jpg water|TwoWings.jpg the sky|Storm.jpg a storm|
GreenMeadow.jpg a meadow|RainDrops.jpg rain drops|FreshFlower.jpg a flower|LadyBird.jpg a ladybird|YellowFlower.jpg a flower|
Blinds.jpg a window
"""

STYLE_TEXTS = {
    "dark": [
        "dark",
        "a dark photo",
        "a photo taken in the dark",
        "a dim scene",
        "an image in low light",
        "underexposed",
    ],
    "bright": [
        "bright",
        "a bright photo",
        "an overexposed photo",
        "a photo in bright light",
        "very bright light",
    ],
    "blurry": [
        "blurry",
        "a blurry photo",
        "an out of focus image",
        "blurred",
        "a photo that is not sharp",
    ],
    "black and white": [
        "black and white",
        "a black and white photo",
        "a greyscale image",
        "a monochrome photo",
        "a photo without colour",
    ],
    "sepia": ["sepia", "an old sepia photo", "a sepia toned image", "a vintage photo"],
    "sketch": ["sketch", "a pencil sketch", "a drawing", "a line drawing", "a sketch of something"],
    "painting": ["painting", "a painting", "an oil painting", "a painting of something"],
    "noisy": ["noisy", "a grainy photo", "a noisy image", "a photo with a lot of noise"],
    "pixelated": ["pixelated", "a pixelated image", "a low resolution image", "blocky pixels"],
    "foggy": ["foggy", "a foggy scene", "a hazy photo", "fog", "mist", "a low contrast photo"],
    "night": ["night", "at night", "a photo taken at night", "a night scene"],
    "upside down": ["upside down", "an upside down image", "a photo turned upside down"],
    "clear": [
        "clear",
        "a sharp photo",
        "a clear photo in focus",
        "a photo in daylight",
        "a normal colour photo",
    ],
}
STYLE_OF_CONTENT = {
    "dark": "a dark photo of {}",
    "bright": "a bright photo of {}",
    "blurry": "a blurry photo of {}",
    "black and white": "a black and white photo of {}",
    "sepia": "a sepia photo of {}",
    "sketch": "a pencil sketch of {}",
    "painting": "a painting of {}",
    "noisy": "a grainy photo of {}",
    "pixelated": "a pixelated image of {}",
    "foggy": "{} in the fog",
    "night": "{} at night",
    "upside down": "{} upside down",
    "clear": "a clear photo of {}",
}


@dataclass(frozen=True)
class Taught:
    """One drawn image, what it teaches and the texts that fit it."""

    image: Image.Image
    attribute: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Material:
    """Cut-outs and photographs, each with its word."""

    cutouts: tuple[tuple[str, Image.Image], ...]
    photographs: tuple[tuple[str, Image.Image], ...]


def with_article(words: str) -> str:
    """Put "a" or "an" before words."""
    return ("an " if words[0] in "aeiou" else "a ") + words


def read_material(cutout_folder: Path, photograph_folders: Sequence[Path]) -> Material:
    """Load the cut-outs (`<code point>.webp`) and the photographs that are listed above."""
    cutouts = []
    for code, word in _table(CUTOUTS):
        found = [
            path
            for path in (cutout_folder / f"{code}.webp", cutout_folder / f"{code}-fe0f.webp")
            if path.exists()
        ]
        cutouts.append((word, Image.open(found[0]).convert("RGBA")))
    photographs = []
    for name, words in _table(PHOTOGRAPHS):
        path = next(folder / name for folder in photograph_folders if (folder / name).exists())
        image = Image.open(path).convert("RGB")
        image.thumbnail((900, 900))
        photographs.append((words, image))
    return Material(tuple(cutouts), tuple(photographs))


def draw_all(material: Material) -> dict[str, list[Taught]]:
    """Draw every teaching image, by group; the same every time."""
    rng = np.random.default_rng(SEED)
    return {
        "colour": _colours(material, rng),
        "style": _styles(material, rng),
        "count": _counts(material, rng),
    }


def draw_nuisance(material: Material) -> tuple[list[Image.Image], list[Image.Image]]:
    """Draw images twice: as they are, and from 32 by 32 pixels."""
    rng = np.random.default_rng(NUISANCE_SEED)
    clear, coarse = [], []
    for number in range(N_NUISANCE):
        view = images.random_view(
            material.photographs[rng.integers(len(material.photographs))][1], rng
        )
        if rng.random() < 0.7:
            view = images.place(
                material.cutouts[rng.integers(len(material.cutouts))][1],
                view,
                rng,
                scale=(0.6, 0.95),
            )
        how = Image.Resampling.BOX if number % 2 else Image.Resampling.BICUBIC
        clear.append(view)
        coarse.append(
            view.resize((32, 32), how).resize((images.SIDE, images.SIDE), Image.Resampling.BICUBIC)
        )
    return clear, coarse


def _table(text: str) -> list[tuple[str, str]]:
    return [tuple(entry.strip().split(" ", 1)) for entry in text.split("|")]  # type: ignore[misc]


def _ground(
    material: Material, rng: np.random.Generator, avoid: str | None = None
) -> tuple[Image.Image, str]:
    chance = rng.random()
    if chance < 0.45:
        return images.plain_background(rng), ""
    if chance < 0.8:
        words, photograph = material.photographs[rng.integers(len(material.photographs))]
        return images.random_view(photograph, rng), f"in front of {words}"
    colour = [name for name in images.COLOURS if name != avoid][rng.integers(10)]
    return images.plain_background(rng, colour), f"on {with_article(colour)} background"


def _colours(material: Material, rng: np.random.Generator) -> list[Taught]:
    every = [
        (word, cutout, colour) for word, cutout in material.cutouts for colour in images.COLOURS
    ]
    made = []
    for index in rng.permutation(len(every))[:N_COLOUR_IMAGES]:
        word, cutout, colour = every[index]
        ground, where = _ground(material, rng, colour)
        image = images.place(images.recolour(cutout, colour, rng), ground, rng)
        made.append(Taught(image, colour, _colour_texts(word, colour, where)))
    return made


def _colour_texts(word: str, colour: str, where: str) -> tuple[str, ...]:
    thing = with_article(f"{colour} {word}")
    texts = [
        colour,
        f"{colour} {word}",
        thing,
        f"a photo of {thing}",
        f"something {colour}",
        f"a photo of something {colour}",
    ]
    texts += [
        f"{with_article(colour)} object",
        f"the {word} is {colour}",
        f"an image with a lot of {colour}",
    ]
    if colour == "grey":
        texts += ["gray", "a gray object", "a photo of something gray", f"a gray {word}"]
    return tuple([*texts, f"{thing} {where}"] if where else texts)


def _styles(material: Material, rng: np.random.Generator) -> list[Taught]:
    made = []
    for style, change in images.FILTERS.items():
        for _ in range(N_PER_STYLE):
            words, photograph = material.photographs[rng.integers(len(material.photographs))]
            view = images.random_view(photograph, rng)
            if rng.random() < 0.5:
                word, cutout = material.cutouts[rng.integers(len(material.cutouts))]
                view, words = images.place(cutout, view, rng, scale=(0.4, 0.8)), with_article(word)
            texts = (*STYLE_TEXTS[style], STYLE_OF_CONTENT[style].format(words))
            made.append(Taught(change(view, rng), style, texts))
    return made


def _counts(material: Material, rng: np.random.Generator) -> list[Taught]:
    made = []
    for count, number in enumerate(NUMBERS, start=1):
        for _ in range(N_PER_COUNT):
            word, cutout = material.cutouts[rng.integers(len(material.cutouts))]
            ground, _where = _ground(material, rng)
            scene = ground.convert("RGB").resize((images.SIDE, images.SIDE))
            for cell in rng.permutation(9)[:count]:
                side = int(rng.uniform(55, 72))
                small = cutout.resize((side, side), Image.Resampling.BICUBIC)
                left, top = (
                    int(cell % 3) * 75 + int(rng.integers(0, 4)),
                    int(cell // 3) * 75 + int(rng.integers(0, 4)),
                )
                scene.paste(small, (left, top), small)
            things = f"{number} {word if count == 1 or word.endswith('s') else word + 's'}"
            there = f"there {'is' if count == 1 else 'are'} {things}"
            made.append(Taught(scene, number, (things, f"a photo of {things}", there)))
    return made
