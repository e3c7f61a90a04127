"""Words and phrases that the embedded text side is taught, and how each is said of a thing."""

from known_word_truths import OF_SCENES

SMALL_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "with",
        "to",
        "and",
        "is",
        "are",
        "by",
        "for",
        "his",
        "her",
        "their",
        "its",
        "from",
        "into",
        "as",
        "it",
        "while",
        "up",
        "out",
        "over",
        "through",
        "near",
        "that",
        "two",
        "three",
        "four",
        "five",
        "one",
        "some",
        "him",
        "them",
        "another",
        "other",
        "there",
        "this",
        "has",
        "have",
        "be",
        "being",
        "been",
        "who",
        "which",
        "what",
        "off",
        "down",
        "around",
        "across",
        "along",
        "against",
        "behind",
        "front",
        "next",
        "top",
        "very",
    ]
)
NOUNS = [
    "apple",
    "pear",
    "orange",
    "car",
    "bus",
    "truck",
    "bicycle",
    "motorcycle",
    "boat",
    "shirt",
    "dress",
    "shoe",
    "hat",
    "bag",
    "flower",
    "tree",
    "leaf",
    "bird",
    "fish",
    "dog",
    "cat",
    "horse",
    "cow",
    "sheep",
    "butterfly",
    "frog",
    "house",
    "building",
    "chair",
    "sofa",
    "bed",
    "door",
    "book",
    "cup",
    "bottle",
    "ball",
    "box",
    "phone",
    "cake",
    "tomato",
    "pepper",
    "banana",
    "person",
    "vegetable",
    "fruit",
    "food",
    "animal",
    "vehicle",
]
COLOUR_PHRASES = (
    "{}",
    "something {}",
    "{} object",
    "{} thing",
    "the colour {}",
    "{}-coloured",
)
# What is drawn on an image, and how it is said of the image and of a thing.
WRITTEN = {
    "text": [
        "text",
        "with text",
        "with text on it",
        "with writing",
        "with writing on it",
        "writing",
        "lettering",
        "letters",
        "with letters",
        "with a word on it",
        "with words on it",
        "words",
        "written words",
        "an image with text",
        "a photo with writing on it",
        "overlaid text",
        "a caption in the image",
    ],
    "label": [
        "with a label",
        "with a label on it",
        "a label",
        "a sticker",
        "with a sticker",
        "with a price tag",
        "a price tag",
        "with a tag",
    ],
    "watermark": [
        "watermark",
        "with a watermark",
        "an image with a watermark",
        "watermarked",
        "a stock photo with a watermark",
    ],
    "date stamp": [
        "date stamp",
        "with a date stamp",
        "with a date",
        "with a time stamp",
        "timestamp",
        "a photo with a date in the corner",
        "with the date",
    ],
}
SAID_OF_NOUN = {
    "text": ("{noun} with text on it", "{noun} with writing", "{noun} with text"),
    "label": ("{noun} with a label",),
    "watermark": ("{noun} with a watermark",),
    "date stamp": ("{noun} with a date stamp",),
}
SIZED = {
    "small": [
        "far away",
        "distant photo",
        "a distant photo",
        "that looks small",
        "seen from far away",
        "small in the frame",
        "tiny in the image",
    ],
    "large": [
        "that looks large",
        "fills the frame",
        "that is huge and fills the frame",
        "large in the frame",
        "seen from very near",
    ],
    "close-up": [
        "close-up",
        "a close-up",
        "close-up photo",
        "macro shot",
        "a close-up photo",
        "an extreme close-up",
    ],
}
# Further ways to say what made scenes show, and how it is said of a thing.
SAID_OF_SCENES = {
    "single": ("a single", "only one", "alone"),
    "in a pile": ("a pile", "a heap", "in a heap"),
    "several": ("several", "many"),
    "cropped": ("cropped photo", "cut off at the edge", "partly outside the image"),
    "hidden": ("partly hidden", "partly covered", "occluded"),
    "in the rain": ("rainy", "rain"),
    "overexposed": ("overexposed photo",),
    "cartoon": ("a cartoon", "a drawing", "a comic"),
}
# What photographs and words told already beside made scenes, and what they told better.
KEPT_SCENES = frozenset(
    {"silver", "golden", "beige", "striped", "spotted", "checked", "several", "in fog"}
)
NOT_TAUGHT = frozenset({"at night", "upside-down"})
SCENES_OF_NOUN = {
    **dict.fromkeys(("silver", "golden", "beige", "striped", "spotted"), "{word} {noun}"),
    **dict.fromkeys(("in the rain", "in a pile"), "{noun} {word}"),
}


def scene_phrases() -> dict[str, tuple[str, ...]]:
    """Return what made scenes teach, and every way to say it."""
    return {
        word: (word, *SAID_OF_SCENES.get(word, ()), *_background_phrases(word))
        for words in (*OF_SCENES.values(), ("cartoon",))
        for word in words
        if word not in NOT_TAUGHT
    }


def _background_phrases(word: str) -> tuple[str, ...]:
    bare = word.removeprefix("on a ")
    return (bare, f"with a {bare}") if bare.endswith(" background") else ()
