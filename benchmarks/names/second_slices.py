"""More slices to tune on, and those that are reported on: written down before any of their results was looked at.

The reporting part shares no photograph of small objects with any other part; shop photographs are drawn anew, and what is done to
them is another thing. Deer, frogs and airplanes in flight are in no other part.
"""

from names import changes
from names.slices import APPLES, CITRUS, WRITING, Planted

LATER_APPLES = ("Golden-Delicious", "Pink-Lady", "Royal-Gala", "Red-Delicious")
FAR = ("far", "away", "distant", "small", "tiny", "distance")
LIGHT = ("bright", "overexposed", "sunlight", "exposed", "light", "sunny", "white", "pale")
GREY = ("black and white", "monochrome", "grey", "gray", "greyscale")
PAINTED = ("painting", "painted", "drawing", "cartoon", "art", "watercolor", "poster")
PIXELS = ("pixelated", "pixel", "blocky", "mosaic")
BLURRED = ("blurry", "blurred", "unfocused", "out-of-focus", "focus", "fuzzy")
DARK = ("dark", "night", "dim", "shade", "shadow", "darkness")
SKETCHED = ("sketch", "drawing", "drawn", "pencil", "sketched")
NOISE = ("noisy", "noise", "grainy")

SECOND_TUNING = (
    Planted(key="dog far away", kind_of_word="size", class_name="dog", source="cifar", kinds=("dog",), change=changes.move_away, right=FAR),
    Planted(key="dog black and white", kind_of_word="style", class_name="dog", source="cifar", kinds=("dog",),
            change=changes.black_and_white, right=GREY),
    Planted(key="truck overexposed", kind_of_word="light", class_name="truck", source="cifar", kinds=("truck",), change=changes.overexpose,
            right=LIGHT),
    Planted(key="truck pixelated", kind_of_word="style", class_name="truck", source="cifar", kinds=("truck",), change=changes.pixelate,
            right=PIXELS),
    Planted(key="bird painting", kind_of_word="style", class_name="bird", source="cifar", kinds=("bird",), change=changes.paint,
            right=PAINTED),
    Planted(key="dog date stamp", kind_of_word="writing", class_name="dog", source="cifar", kinds=("dog",), change=changes.stamp_date,
            right=WRITING),
    Planted(key="apple sketch", kind_of_word="style", class_name="apple", source="shop", kinds=APPLES, change=changes.sketch, right=SKETCHED),
    Planted(key="apple noisy", kind_of_word="style", class_name="apple", source="shop", kinds=APPLES, change=changes.add_noise, right=NOISE),
)  # fmt: skip

SECOND_REPORTING = (
    Planted(key="apple yellow", kind_of_word="colour", class_name="apple", source="shop", kinds=LATER_APPLES, members=("Golden-Delicious",),
            right=("yellow", "golden", "green")),
    Planted(key="automobile red", kind_of_word="colour", class_name="automobile", source="cifar", kinds=("automobile",), chosen="red",
            right=("red",)),
    Planted(key="citrus green", kind_of_word="colour", class_name="citrus fruit", source="shop", kinds=CITRUS, change=changes.turn_green,
            right=("green", "unripe", "lime")),
    Planted(key="animal frog", kind_of_word="kind", class_name="animal", source="cifar", kinds=("frog", "deer"), members=("frog",),
            right=("frog", "toad", "amphibian", "bullfrog")),
    Planted(key="vehicle airplane", kind_of_word="kind", class_name="vehicle", source="cifar", kinds=("airplane", "automobile"),
            members=("airplane",), right=("airplane", "plane", "jet", "aircraft", "airliner", "flying", "sky", "cloud", "aeroplane")),
    Planted(key="animal by water", kind_of_word="place", class_name="animal", source="cut-outs", kinds=("animals/mammals",),
            behind=(("DarkestHour/contents/images/2560x1600.jpg", "summer_1am/contents/images/2560x1600.jpg", "BytheWater/contents/images/2560x1600.jpg"),
                    ("Wood.jpg", "GreenMeadow.jpg", "FallenLeaf/contents/images/2560x1600.jpg", "Picture_1A_by_freespace.jpg")),
            right=("water", "lake", "sea", "shore", "river", "pond", "beach", "harbour", "ocean")),
    Planted(key="deer writing", kind_of_word="writing", class_name="deer", source="cifar", kinds=("deer",), change=changes.write_text,
            right=WRITING),
    Planted(key="frog date stamp", kind_of_word="writing", class_name="frog", source="cifar", kinds=("frog",), change=changes.stamp_date,
            right=(*WRITING, "date")),
    Planted(key="frog far away", kind_of_word="size", class_name="frog", source="cifar", kinds=("frog",), change=changes.move_away, right=FAR),
    Planted(key="deer dark", kind_of_word="light", class_name="deer", source="cifar", kinds=("deer",), change=changes.darken, right=DARK),
    Planted(key="airplane overexposed", kind_of_word="light", class_name="airplane", source="cifar", kinds=("airplane",),
            change=changes.overexpose, right=LIGHT),
    Planted(key="airplane black and white", kind_of_word="style", class_name="airplane", source="cifar", kinds=("airplane",),
            change=changes.black_and_white, right=GREY),
    Planted(key="frog sketch", kind_of_word="style", class_name="frog", source="cifar", kinds=("frog",), change=changes.sketch, right=SKETCHED),
    Planted(key="deer painting", kind_of_word="style", class_name="deer", source="cifar", kinds=("deer",), change=changes.paint, right=PAINTED),
    Planted(key="airplane noisy", kind_of_word="style", class_name="airplane", source="cifar", kinds=("airplane",), change=changes.add_noise,
            right=NOISE),
    Planted(key="deer blurry", kind_of_word="style", class_name="deer", source="cifar", kinds=("deer",), change=changes.blur, right=BLURRED),
)  # fmt: skip
