"""A first look at data that nobody has read yet: what it is, its classes and columns, a few images, and what is wrong with it."""

from collections import Counter
from collections.abc import Mapping

from pydantic import Field

from weakspot.core.dataset import RawSample
from weakspot.core.errors import WeakspotError
from weakspot.ingest.columns import resolve_columns
from weakspot.ingest.one_table import OneTableSource
from weakspot.ingest.problems import Problems
from weakspot.ingest.source import SampleSource
from weakspot.pipeline.loop import open_data
from weakspot.pipeline.preflight.source_look import SourceLook, look_at_source
from weakspot.pipeline.settings import DataSettings
from weakspot.web.services.setup.places import AllowedPlaces
from weakspot.web.services.view import View

N_IMAGES = 24
MOST_CLASSES = 200
ROLES = ("path", "label", "prediction", "probabilities", "split", "group")
"""What a column can be chosen for on the page; the other roles are rare and written into weakspot.toml."""


class SeenClass(View):
    """A label that was seen, and how often in each split."""

    name: str
    n_samples: int
    splits: dict[str, int]


class SeenImage(View):
    """One image of the data.

    Args:
        place: by which it is asked for.
        label: what it shows, as the data says.
    """

    place: int
    label: str


class DataLook(View):
    """What was seen of data.

    Args:
        source: the whole path.
        kind: what it was taken for; empty if that is not known.
        n_samples: labelled samples that were seen.
        is_whole: whether the data was seen to its end.
        classes: labels, the most common first.
        n_classes: how many there are.
        images: a few images, of every class in turn.
        has_images: whether samples have images.
        has_predictions: whether the data says what a classifier predicted.
        columns: of a table, in order.
        roles: what columns mean, as far as their names tell or was given.
        problem: why it cannot be used as it is; empty if it can.
    """

    source: str
    kind: str = ""
    n_samples: int = 0
    is_whole: bool = True
    classes: tuple[SeenClass, ...] = ()
    n_classes: int = 0
    images: tuple[SeenImage, ...] = ()
    has_images: bool = False
    has_predictions: bool = False
    columns: tuple[str, ...] = ()
    roles: dict[str, str] = Field(default_factory=dict)
    problem: str = ""


def look_at_data(
    places: AllowedPlaces, source: str, columns: Mapping[str, str]
) -> tuple[DataLook, list[RawSample]]:
    """Return what is seen of data, and the samples whose images may be shown.

    Args:
        places: what may be read.
        source: the path, as a person gave it.
        columns: role to column of a table, as a person says.

    Raises:
        ConfigError: if the place may not be read, or nothing is there.
    """
    path = str(places.allow(source))
    settings = DataSettings(source=path, columns=dict(columns))
    seen: dict[str, object] = {"source": path}
    try:
        opened = open_data(settings, places.start)
        seen |= _of_source(opened)
        look = look_at_source(opened)
    except WeakspotError as error:
        return DataLook.model_validate(seen | {"problem": _said(error)}), []
    shown = _spread(look.samples)
    seen |= _of_look(look, shown)
    if not look.n_of(None) and not any(look.counts.values()):
        seen["problem"] = "No sample has a label."
    return DataLook.model_validate(seen), shown


def _of_source(source: SampleSource) -> dict[str, object]:
    seen: dict[str, object] = {"kind": source.kind}
    if isinstance(source, OneTableSource):
        header = source.table.header
        roles = resolve_columns(header, source.columns, Problems(), with_images=source.with_images)
        named = {
            "path": roles.image,
            "label": roles.labels,
            "prediction": roles.predictions,
            "probabilities": roles.probabilities,
            "split": roles.split,
            "group": source.columns.get("group"),
        }
        seen |= {
            "columns": list(header.names),
            "roles": {role: name for role, name in named.items() if name is not None},
            "has_predictions": roles.has_predictions,
        }
    return seen


def _of_look(look: SourceLook, shown: list[RawSample]) -> dict[str, object]:
    totals: Counter[str] = Counter()
    for counts in look.counts.values():
        totals.update(counts)
    classes = [
        SeenClass(
            name=name,
            n_samples=n,
            splits={
                "not said" if split is None else split.value: counts[name]
                for split, counts in look.counts.items()
                if counts[name]
            },
        )
        for name, n in totals.most_common(MOST_CLASSES)
    ]
    return {
        "n_samples": totals.total(),
        "is_whole": look.is_whole,
        "classes": classes,
        "n_classes": len(totals),
        "has_images": bool(shown),
        "images": [
            SeenImage(place=place, label=sample.labels[0]) for place, sample in enumerate(shown)
        ],
    }


def _spread(samples: list[RawSample]) -> list[RawSample]:
    """Return a few samples, of every class in turn, from all over the data."""
    by_class: dict[str, list[RawSample]] = {}
    for sample in samples:
        by_class.setdefault(sample.labels[0], []).append(sample)
    each = max(1, N_IMAGES // max(1, len(by_class)))
    chosen = [
        own[place * len(own) // each]
        for own in list(by_class.values())[:N_IMAGES]
        for place in range(min(each, len(own)))
    ]
    return chosen[:N_IMAGES]


def _said(error: WeakspotError) -> str:
    return " ".join(filter(None, (error.what, error.fix)))
