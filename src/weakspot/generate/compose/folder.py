"""A labelled folder as the pictures to compose from, for use without a project."""

import hashlib
from dataclasses import dataclass, field

from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.core.own_pictures import OwnPictures
from weakspot.lexicon.captions import noun_of
from weakspot.lexicon.matching import same_contrast
from weakspot.media.formats import sniff_format
from weakspot.media.listing import is_folder, list_files
from weakspot.media.locations import read_location, shown_location
from weakspot.media.pictures import decode_picture

BACKGROUNDS = "backgrounds"
MASK_ENDING = "_mask.png"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Folder:
    """Locations by path below the folder; paths by class, and by the words of a background."""

    locations: dict[str, str] = field(default_factory=dict)
    masks: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    def backgrounds(self, words: str) -> list[str]:
        """Return the pictures of the background folder that says the same."""
        exact = self.places.get(words)
        return exact or next((names for place, names in self.places.items() if same_contrast(place, words)), [])

    def picture(self, name: str) -> Image.Image:
        """Return a picture."""
        return decode_picture(read_location(self.locations[name])).picture

    def mask(self, name: str) -> Image.Image | None:
        """Return the mask beside a picture, if there is one: its name, with or without the ending, and `_mask.png`."""
        for mask in (f"{name}{MASK_ENDING}", f"{name.rpartition('.')[0]}{MASK_ENDING}"):
            if mask in self.masks:
                return decode_picture(read_location(self.masks[mask])).picture.convert("L")
        return None


def pictures_of_folder(location: str) -> OwnPictures:
    """Return the pictures below a folder: `<class>/picture.jpg`, and `backgrounds/<words>/picture.jpg`.

    Raises:
        ConfigError: if there is no such folder, or no picture in a folder of a class.
    """
    if not is_folder(location):
        raise ConfigError("There is no such folder of pictures.", where="generator.pictures", given=shown_location(location))
    folder, digest = _Folder(), hashlib.sha256()
    for file in list_files(location):
        top, *below = file.relative.split("/")
        data = read_location(file.location) if below else b""
        if sniff_format(data) is None:
            continue
        digest.update(file.relative.encode() + b"\0" + hashlib.sha256(data).digest())
        if file.relative.endswith(MASK_ENDING):
            folder.masks[file.relative] = file.location
            continue
        folder.locations[file.relative] = file.location
        if top != BACKGROUNDS:
            folder.classes.setdefault(top, []).append(file.relative)
        elif len(below) > 1:
            folder.places.setdefault(noun_of(below[0]).lower(), []).append(file.relative)
    if not folder.classes:
        raise ConfigError(
            "The folder holds no pictures in folders of classes.",
            where="generator.pictures",
            given=shown_location(location),
            fix="Put the pictures into one sub-folder a class, and backgrounds into backgrounds/<words>.",
        )
    return OwnPictures(
        class_names=tuple(folder.classes),
        objects=lambda class_name: folder.classes.get(class_name, []),
        backgrounds=folder.backgrounds,
        background_words=tuple(folder.places),
        picture=folder.picture,
        mask=folder.mask,
        digest=digest.hexdigest()[:16],
    )
