"""The slices that are reported on third: written down before any of their results was looked at.

The mix of words is that of the second reporting part, one and a half times. No photograph of small objects is in any other part, no
photograph of a shop is changed in the same way elsewhere, and backgrounds of slices are in no other part.
"""

from names import changes
from names.second_slices import BLURRED, DARK, FAR, GREY, LIGHT, NOISE, PAINTED, PIXELS, SKETCHED
from names.slices import CITRUS, PEARS, WRITING, Planted

GREENISH_APPLES = ("Granny-Smith", "Golden-Delicious", "Red-Delicious")
YELLOW_MELONS = ("Cantaloupe", "Honeydew-Melon")
# Enlarged parts of photographs are blurry too.
CLOSE = ("close-up", "closeup", "close", "near", "macro", "large", "single", "big", "blurry")

THIRD_REPORTING = (
    Planted(key="apple red", kind_of_word="colour", class_name="apple", source="shop", kinds=GREENISH_APPLES, members=("Red-Delicious",),
            right=("red", "dark red", "crimson", "scarlet")),
    Planted(key="automobile blue", kind_of_word="colour", class_name="automobile", source="cifar", kinds=("automobile",), chosen="blue",
            right=("blue",)),
    Planted(key="pear red", kind_of_word="colour", class_name="pear", source="shop", kinds=PEARS, change=changes.turn_red,
            right=("red", "crimson", "scarlet", "pink")),
    Planted(key="melon green", kind_of_word="colour", class_name="melon", source="shop", kinds=YELLOW_MELONS, change=changes.turn_green,
            right=("green", "unripe", "lime")),
    Planted(key="animal cat", kind_of_word="kind", class_name="animal", source="cifar", kinds=("cat", "horse"), members=("cat",),
            right=("cat", "kitten", "feline", "tabby", "kitty")),
    Planted(key="vehicle automobile", kind_of_word="kind", class_name="vehicle", source="cifar", kinds=("automobile", "ship"),
            members=("automobile",),
            right=("automobile", "car", "sedan", "sports", "convertible", "cab", "taxi", "wagon", "auto", "road", "street", "coupe", "suv", "jeep")),
    Planted(key="fruit pear", kind_of_word="kind", class_name="fruit", source="shop", kinds=("Anjou", "Granny-Smith"), members=("Anjou",),
            right=("pear", "anjou")),
    Planted(key="insect with flowers", kind_of_word="place", class_name="insect", source="cut-outs", kinds=("animals/insects",),
            behind=(("Garden.jpg", "YellowFlower.jpg", "FreshFlower.jpg", "TwoWings.jpg"),
                    ("Wood.jpg", "Storm.jpg", "ColdRipple/contents/images/2560x1600.jpg", "ColorfulCups/contents/images/2560x1600.jpg")),
            right=("flower", "flowers", "floral", "blossom", "garden", "meadow", "petal", "bloom", "plant", "plants")),
    Planted(key="bird in the sky", kind_of_word="place", class_name="bird", source="cut-outs", kinds=("animals/birds",),
            behind=(("Kite/contents/images/2560x1600.jpg", "Bridge_by_Sander_Klootwijk.jpg"),
                    ("Wood.jpg", "GreenMeadow.jpg", "OneStandsOut/contents/images/2560x1600.jpg", "FallenLeaf/contents/images/2560x1600.jpg")),
            right=("sky", "cloud", "clouds", "air", "flying", "flight")),
    Planted(key="cat writing", kind_of_word="writing", class_name="cat", source="cifar", kinds=("cat",), change=changes.write_text,
            right=WRITING),
    Planted(key="horse date stamp", kind_of_word="writing", class_name="horse", source="cifar", kinds=("horse",), change=changes.stamp_date,
            right=(*WRITING, "date")),
    Planted(key="pear label", kind_of_word="writing", class_name="pear", source="shop", kinds=PEARS, change=changes.stick_label,
            right=WRITING),
    Planted(key="ship far away", kind_of_word="size", class_name="ship", source="cifar", kinds=("ship",), change=changes.move_away, right=FAR),
    Planted(key="melon near", kind_of_word="size", class_name="melon", source="shop", kinds=YELLOW_MELONS, change=changes.zoom_in,
            right=CLOSE),
    Planted(key="horse dark", kind_of_word="light", class_name="horse", source="cifar", kinds=("horse",), change=changes.darken, right=DARK),
    Planted(key="ship overexposed", kind_of_word="light", class_name="ship", source="cifar", kinds=("ship",), change=changes.overexpose,
            right=LIGHT),
    Planted(key="citrus dark", kind_of_word="light", class_name="citrus fruit", source="shop", kinds=CITRUS, change=changes.darken,
            right=DARK),
    Planted(key="cat black and white", kind_of_word="style", class_name="cat", source="cifar", kinds=("cat",),
            change=changes.black_and_white, right=GREY),
    Planted(key="ship sketch", kind_of_word="style", class_name="ship", source="cifar", kinds=("ship",), change=changes.sketch, right=SKETCHED),
    Planted(key="horse painting", kind_of_word="style", class_name="horse", source="cifar", kinds=("horse",), change=changes.paint,
            right=PAINTED),
    Planted(key="melon painting", kind_of_word="style", class_name="melon", source="shop", kinds=YELLOW_MELONS, change=changes.paint,
            right=PAINTED),
    Planted(key="cat blurry", kind_of_word="style", class_name="cat", source="cifar", kinds=("cat",), change=changes.blur, right=BLURRED),
    Planted(key="horse noisy", kind_of_word="style", class_name="horse", source="cifar", kinds=("horse",), change=changes.add_noise,
            right=NOISE),
    Planted(key="citrus pixelated", kind_of_word="style", class_name="citrus fruit", source="shop", kinds=CITRUS, change=changes.pixelate,
            right=PIXELS),
)  # fmt: skip
