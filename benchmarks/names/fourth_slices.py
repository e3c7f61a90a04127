"""The slices that are reported on fourth: written down before any of their results was looked at.

The mix of words is that of the third reporting part. No photograph of small objects is in any other part, no photograph of a shop is
changed in the same way elsewhere, and backgrounds of slices are in no other part. They are run in an order that is drawn here, so that
what is finished when time is over is nobody's choice.
"""

import numpy as np

from names import changes
from names.second_slices import (
    BLURRED,
    DARK,
    FAR,
    GREY,
    LIGHT,
    NOISE,
    PAINTED,
    PIXELS,
    SKETCHED,
)
from names.slices import APPLES, CITRUS, WRITING, Planted
from names.third_slices import CLOSE

SEED = 23
NETTED_MELONS = ("Cantaloupe", "Galia-Melon")
SMOOTH_MELONS = ("Honeydew-Melon", "Watermelon")
INDOORS = ("Wood.jpg", "Aqua.jpg", "Wine_by_Jakkub_Mede.jpg", "greentock_by_Peter_Nerlich.jpg")

_WRITTEN = (
    Planted(key="melon dark green", kind_of_word="colour", class_name="melon", source="shop",
            kinds=("Cantaloupe", "Honeydew-Melon", "Watermelon"), members=("Watermelon",), right=("green", "striped", "watermelon")),
    Planted(key="truck blue", kind_of_word="colour", class_name="truck", source="cifar", kinds=("truck",), chosen="blue", right=("blue",)),
    Planted(key="melon red", kind_of_word="colour", class_name="melon", source="shop", kinds=NETTED_MELONS, change=changes.turn_red,
            right=("red", "crimson", "scarlet", "pink")),
    Planted(key="citrus purple", kind_of_word="colour", class_name="citrus fruit", source="shop", kinds=CITRUS, change=changes.turn_purple,
            right=("purple", "violet", "lilac", "magenta")),
    Planted(key="animal bird", kind_of_word="kind", class_name="animal", source="cifar", kinds=("bird", "deer"), members=("bird",),
            right=("bird", "ostrich", "sparrow", "finch", "parrot", "hen", "songbird", "feathered", "emu", "wren", "owl")),
    Planted(key="vehicle ship", kind_of_word="kind", class_name="vehicle", source="cifar", kinds=("ship", "airplane"), members=("ship",),
            right=("ship", "boat", "vessel", "water", "sea", "harbour", "ferry", "ocean", "liner", "river", "shore", "craft")),
    Planted(key="fruit melon", kind_of_word="kind", class_name="fruit", source="shop", kinds=("Galia-Melon", "Golden-Delicious"),
            members=("Galia-Melon",), right=("melon", "muskmelon", "galia", "cantaloupe", "honeydew")),
    Planted(key="animal in the mountains", kind_of_word="place", class_name="animal", source="cut-outs", kinds=("animals/mammals",),
            behind=(("picosdeeuropa_by_Aitzol_Berasategi.jpg", "sunset_by_Aitzol_Berasategi.jpg"), INDOORS),
            right=("mountain", "mountains", "hill", "hills", "rock", "rocks", "field", "meadow", "grass", "grassy", "valley")),
    Planted(key="fruit among grass", kind_of_word="place", class_name="fruit", source="cut-outs", kinds=("food/fruit",),
            behind=(("Dune.jpg", "seeding_by_Clements_Engelhardt.jpg", "RainDrops.jpg"), INDOORS),
            right=("grass", "grassy", "field", "meadow", "garden", "leaf", "leaves", "plant", "plants", "lawn")),
    Planted(key="bird date stamp", kind_of_word="writing", class_name="bird", source="cifar", kinds=("bird",), change=changes.stamp_date,
            right=(*WRITING, "date")),
    Planted(key="frog label", kind_of_word="writing", class_name="frog", source="cifar", kinds=("frog",), change=changes.stick_label,
            right=WRITING),
    Planted(key="melon writing", kind_of_word="writing", class_name="melon", source="shop", kinds=SMOOTH_MELONS, change=changes.write_text,
            right=WRITING),
    Planted(key="automobile far away", kind_of_word="size", class_name="automobile", source="cifar", kinds=("automobile",),
            change=changes.move_away, right=FAR),
    Planted(key="citrus near", kind_of_word="size", class_name="citrus fruit", source="shop", kinds=CITRUS, change=changes.zoom_in,
            right=CLOSE),
    Planted(key="frog dark", kind_of_word="light", class_name="frog", source="cifar", kinds=("frog",), change=changes.darken, right=DARK),
    Planted(key="dog overexposed", kind_of_word="light", class_name="dog", source="cifar", kinds=("dog",), change=changes.overexpose,
            right=LIGHT),
    Planted(key="apple dark", kind_of_word="light", class_name="apple", source="shop", kinds=APPLES, change=changes.darken, right=DARK),
    Planted(key="frog black and white", kind_of_word="style", class_name="frog", source="cifar", kinds=("frog",),
            change=changes.black_and_white, right=GREY),
    Planted(key="automobile sketch", kind_of_word="style", class_name="automobile", source="cifar", kinds=("automobile",),
            change=changes.sketch, right=SKETCHED),
    Planted(key="airplane painting", kind_of_word="style", class_name="airplane", source="cifar", kinds=("airplane",), change=changes.paint,
            right=PAINTED),
    Planted(key="citrus painting", kind_of_word="style", class_name="citrus fruit", source="shop", kinds=CITRUS, change=changes.paint,
            right=PAINTED),
    Planted(key="bird blurry", kind_of_word="style", class_name="bird", source="cifar", kinds=("bird",), change=changes.blur, right=BLURRED),
    Planted(key="deer noisy", kind_of_word="style", class_name="deer", source="cifar", kinds=("deer",), change=changes.add_noise, right=NOISE),
    Planted(key="melon pixelated", kind_of_word="style", class_name="melon", source="shop", kinds=SMOOTH_MELONS, change=changes.pixelate,
            right=PIXELS),
)  # fmt: skip

FOURTH_REPORTING = tuple(
    _WRITTEN[place] for place in np.random.default_rng(SEED).permutation(len(_WRITTEN))
)
