"""The first slices, and which words are right for each: written down before any result was looked at.

Tuning and reporting share no photograph and no class. Words differ too, but for writing in the image, which both have. Since their
results were seen, both tune; `second_slices.py` has those that are reported on.
"""

from dataclasses import dataclass

from names import changes
from names.changes import Change

WRITING = (
    "text", "writing", "written", "word", "words", "letter", "letters", "lettering", "label", "tag", "sticker", "caption", "sign",
    "watermark", "stamp", "price", "print", "printed", "name", "logo",
)  # fmt: skip
ON_THE_GROUND = (
    "runway", "ground", "parked", "airport", "airfield", "tarmac", "road", "grass", "field", "hangar", "landing", "landed",
    "standing", "street", "meadow",
)  # fmt: skip
# Which of the first 200 CIFAR-10 test photographs of airplanes show one on the ground, and of which it cannot be told: by eye.
GROUNDED = (
    4, 5, 6, 7, 10, 13, 15, 16, 17, 19, 23, 26, 27, 30, 32, 33, 39, 40, 41, 44, 49, 54, 55, 57, 58, 62, 66, 67, 69, 70, 73, 74, 75,
    80, 81, 82, 83, 90, 96, 97, 102, 103, 108, 109, 110, 113, 120, 122, 128, 132, 137, 138, 139, 146, 147, 148, 149, 151, 152, 153,
    161, 163, 166, 167, 168, 172, 173, 175, 185, 188, 190, 191, 196,
)  # fmt: skip
UNCLEAR = (
    0, 12, 21, 25, 28, 35, 37, 47, 48, 52, 59, 61, 68, 72, 78, 87, 88, 91, 92, 94, 95, 99, 100, 101, 117, 118, 121, 123, 127, 156,
    171, 178, 181, 186, 193, 194, 199,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A slice to plant.

    Args:
        key: which world.
        kind_of_word: colour, kind, place, writing, size, light or style.
        class_name: the class.
        source: `shop`, `cifar` or `cut-outs`.
        kinds: whose photographs are in the class; of `cut-outs`, the group of stamps.
        members: kinds that are the slice; empty if photographs are changed or chosen instead.
        change: what is done to a quarter of the photographs.
        chosen: `red`, `blue` or `grounded`: photographs of the slice are chosen by pixels or by eye.
        behind: of cut-outs: backgrounds of the slice, and the others.
        right: words that are right, as any word of the title.
    """

    key: str
    kind_of_word: str
    class_name: str
    source: str
    kinds: tuple[str, ...]
    right: tuple[str, ...]
    members: tuple[str, ...] = ()
    change: Change | None = None
    chosen: str = ""
    behind: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


APPLES = ("Granny-Smith", "Pink-Lady", "Royal-Gala", "Red-Delicious")
PEARS = ("Anjou", "Conference", "Kaiser")
CITRUS = ("Orange", "Satsumas")

TUNING = (
    Planted(key="apple green", kind_of_word="colour", class_name="apple", source="shop", kinds=APPLES, members=("Granny-Smith",),
            right=("green", "granny")),
    Planted(key="truck red", kind_of_word="colour", class_name="truck", source="cifar", kinds=("truck",), chosen="red", right=("red",)),
    Planted(key="apple writing", kind_of_word="writing", class_name="apple", source="shop", kinds=APPLES, change=changes.write_text,
            right=WRITING),
    Planted(key="apple near", kind_of_word="size", class_name="apple", source="shop", kinds=APPLES, change=changes.zoom_in,
            right=("close-up", "closeup", "close", "near", "macro", "large", "single", "big", "blurry")),  # small parts, enlarged
    Planted(key="dog dark", kind_of_word="light", class_name="dog", source="cifar", kinds=("dog",), change=changes.darken,
            right=("dark", "night", "dim", "shade", "shadow", "darkness")),
    Planted(key="dog sketch", kind_of_word="style", class_name="dog", source="cifar", kinds=("dog",), change=changes.sketch,
            right=("sketch", "drawing", "drawn", "pencil", "sketched")),
    Planted(key="truck blurry", kind_of_word="style", class_name="truck", source="cifar", kinds=("truck",), change=changes.blur,
            right=("blurry", "blurred", "unfocused", "out-of-focus", "focus", "fuzzy")),
    Planted(key="bird noisy", kind_of_word="style", class_name="bird", source="cifar", kinds=("bird",), change=changes.add_noise,
            right=("noisy", "noise", "grainy")),
    Planted(key="bird writing", kind_of_word="writing", class_name="bird", source="cifar", kinds=("bird",), change=changes.stick_label,
            right=WRITING),
    Planted(key="pet dog", kind_of_word="kind", class_name="animal", source="cifar", kinds=("bird", "dog"), members=("dog",),
            right=("dog", "puppy", "terrier", "hound", "retriever", "canine", "spaniel", "furry")),
    Planted(key="vehicle truck", kind_of_word="kind", class_name="vehicle", source="cifar", kinds=("truck", "automobile"),
            members=("truck",), right=("truck", "lorry", "pickup", "trailer", "van", "dump", "tow", "moving")),
    Planted(key="animal on grass", kind_of_word="place", class_name="animal", source="cut-outs", kinds=("animals/mammals",),
            behind=(("GreenMeadow.jpg", "aitzgorri_by_Aitzol_Berasategi.jpg"), ("Wood.jpg", "Storm.jpg", "summer_1am/contents/images/2560x1600.jpg", "EveningGlow/contents/images/2560x1600.jpg")),
            right=("grass", "grassy", "meadow", "field", "lawn", "garden", "green", "pasture")),
)  # fmt: skip

REPORTING = (
    Planted(key="melon yellow", kind_of_word="colour", class_name="melon", source="shop", kinds=("Cantaloupe", "Watermelon", "Honeydew-Melon"),
            members=("Honeydew-Melon",), right=("yellow", "golden", "honeydew")),
    Planted(key="pear brown", kind_of_word="colour", class_name="pear", source="shop", kinds=PEARS, members=("Kaiser",),
            right=("brown", "golden", "bosc", "tan", "beige")),
    Planted(key="automobile red", kind_of_word="colour", class_name="automobile", source="cifar", kinds=("automobile",), chosen="red",
            right=("red",)),
    Planted(key="melon watermelon", kind_of_word="kind", class_name="melon", source="shop",
            kinds=("Cantaloupe", "Galia-Melon", "Honeydew-Melon", "Watermelon"), members=("Watermelon",),
            right=("watermelon", "watermelons", "green", "striped")),
    Planted(key="citrus satsuma", kind_of_word="kind", class_name="citrus fruit", source="shop", kinds=CITRUS, members=("Satsumas",),
            right=("satsuma", "mandarin", "tangerine", "clementine")),
    Planted(key="animal horse", kind_of_word="kind", class_name="animal", source="cifar", kinds=("cat", "horse"),
            members=("horse",), right=("horse", "pony", "mare", "stallion", "foal", "equine", "saddle", "racehorse")),
    Planted(key="vehicle ship", kind_of_word="kind", class_name="vehicle", source="cifar", kinds=("ship", "automobile"), members=("ship",),
            right=("ship", "boat", "vessel", "water", "sea", "harbour", "ferry", "ocean", "liner", "river", "shore", "craft")),
    Planted(key="airplane grounded", kind_of_word="place", class_name="airplane", source="cifar", kinds=("airplane",), chosen="grounded",
            right=ON_THE_GROUND),
    Planted(key="bird in forest", kind_of_word="place", class_name="bird", source="cut-outs", kinds=("animals/birds",),
            behind=(("Path/contents/images/2560x1600.jpg", "life_by_Aitzol_Berasategi.jpg"), ("Wood.jpg", "Storm.jpg", "Kite/contents/images/2560x1600.jpg", "Bridge_by_Sander_Klootwijk.jpg")),
            right=("forest", "wood", "woods", "woodland", "tree", "trees", "jungle", "wooded")),
    Planted(key="ship writing", kind_of_word="writing", class_name="ship", source="cifar", kinds=("ship",), change=changes.write_text,
            right=WRITING),
    Planted(key="citrus label", kind_of_word="writing", class_name="citrus fruit", source="shop", kinds=CITRUS, change=changes.stick_label,
            right=WRITING),
    Planted(key="pear far away", kind_of_word="size", class_name="pear", source="shop", kinds=PEARS, change=changes.move_away,
            right=("far", "away", "distant", "small", "tiny", "distance")),
    Planted(key="cat overexposed", kind_of_word="light", class_name="cat", source="cifar", kinds=("cat",), change=changes.overexpose,
            right=("bright", "overexposed", "sunlight", "exposed", "light", "sunny", "white", "pale")),
    Planted(key="horse black and white", kind_of_word="style", class_name="horse", source="cifar", kinds=("horse",),
            change=changes.black_and_white, right=("black and white", "monochrome", "grey", "gray", "greyscale")),
    Planted(key="cat painting", kind_of_word="style", class_name="cat", source="cifar", kinds=("cat",), change=changes.paint,
            right=("painting", "painted", "drawing", "cartoon", "art", "watercolor", "poster")),
    Planted(key="horse pixelated", kind_of_word="style", class_name="horse", source="cifar", kinds=("horse",), change=changes.pixelate,
            right=("pixelated", "pixel", "blocky", "mosaic")),
)  # fmt: skip
