"""Setting up a project in the browser: where its images are, what classifies them, and whether both fit together."""

import os
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field

from weakspot.core.dataset import RawSample
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.data.columns import ROLES, resolve_columns
from weakspot.data.hf_dataset import SHARD_EXTENSIONS
from weakspot.data.image_folder import is_image_name
from weakspot.data.images import UnreadableImageError, jpeg_of
from weakspot.data.locations import TAR_EXTENSIONS, UnreadableLocationError, read_location
from weakspot.data.settings import DataSettings
from weakspot.data.source import Problems, SampleSource
from weakspot.data.table_source import ManifestSource, PredictionsSource
from weakspot.data.tables import TABLE_EXTENSIONS
from weakspot.project.new_settings import BY_SUFFIX, classifier_settings, recommended_settings
from weakspot.project.project import Project
from weakspot.run.loop import open_data
from weakspot.run.preflight.source_look import SourceLook, look_at_source
from weakspot.run.settings import (
    SETTINGS_FILE,
    PartSettings,
    Settings,
    load_settings,
)
from weakspot.store.project import DATA_FOLDER, ProjectStore
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MAX_LISTED = 500
MAX_LOOKED_AT = 20_000


PlaceKind = Literal["folder", "data", "model"]
"""What lies at a place, as far as its name tells."""


class Place(View):
    """Something that can be chosen.

    Args:
        name: its own name.
        path: the whole path.
        kind: what it may be.
    """

    name: str
    path: str
    kind: PlaceKind


class PlaceList(View):
    """What lies in a folder.

    Args:
        path: the folder.
        above: the folder around it, None if that may not be looked into.
        places: folders first, then files that may be data or models; hidden ones are left out.
        n_images: image files that lie there themselves.
        is_whole: whether everything is listed.
    """

    path: str
    above: str | None
    places: list[Place]
    n_images: int
    is_whole: bool


@dataclass(frozen=True, kw_only=True)
class AllowedPlaces:
    """What may be named: nothing but what lies below some folders, links followed.

    Args:
        start: where relative paths start.
        roots: the folders, and single files.
    """

    start: Path
    roots: Sequence[Path]

    def allow(self, text: str) -> Path:
        """Return the real path of a place.

        Raises:
            ConfigError: if it lies elsewhere, or nothing is there.
        """
        try:
            found = (self.start / text).resolve()
            is_there = found.exists()
        except (OSError, ValueError, RuntimeError):
            raise ConfigError("This is no path.", where="path") from None
        if not any(found.is_relative_to(root.resolve()) for root in self.roots):
            below = " or ".join(dict.fromkeys(str(root.resolve()) for root in self.roots))
            raise ConfigError(
                "This place may not be read from here.",
                where="path",
                fix=f"Choose something below {below}, or start `weakspot serve` with the place behind it.",
            )
        if not is_there:
            raise ConfigError("There is nothing at this path.", where="path", fix="Correct it.")
        return found

    def list_folder(self, text: str) -> PlaceList:
        """Return what lies in a folder.

        Raises:
            ConfigError: if it may not be read, is not there, or is a file.
        """
        folder = self.allow(text or ".")
        try:
            entries = sorted(
                islice(os.scandir(folder), MAX_LOOKED_AT), key=lambda one: one.name.lower()
            )
        except OSError as error:
            raise ConfigError(
                f"The folder cannot be read: {error.strerror}.", where="path"
            ) from error
        seen = [(one, _kind_of(one)) for one in entries if not one.name.startswith(".")]
        places = [
            Place(name=one.name, path=one.path, kind=kind) for one, kind in seen if kind is not None
        ]
        places.sort(key=lambda place: place.kind != "folder")
        above = folder.parent
        may_rise = any(above.is_relative_to(root.resolve()) for root in self.roots)
        return PlaceList(
            path=str(folder),
            above=str(above) if may_rise and above != folder else None,
            places=places[:MAX_LISTED],
            n_images=sum(is_image_name(one.name) for one, _ in seen),
            is_whole=len(places) <= MAX_LISTED and len(entries) < MAX_LOOKED_AT,
        )


def _kind_of(entry: "os.DirEntry[str]") -> PlaceKind | None:
    name = entry.name.lower()
    try:
        if entry.is_dir():
            return "folder"
    except OSError:
        return None
    if name.endswith((*TABLE_EXTENSIONS, *TAR_EXTENSIONS, *SHARD_EXTENSIONS)):
        return "data"
    return "model" if name.endswith(tuple(BY_SUFFIX)) else None


N_IMAGES = 24
MAX_CLASSES = 200
COLUMN_CHOICES = ("path", "label", "prediction", "probabilities", "split", "group")
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
        return DataLook.model_validate(
            seen | {"problem": " ".join(filter(None, (error.what, error.fix)))}
        ), []
    shown = _spread(look.samples)
    seen |= _of_look(look, shown)
    if not look.n_of(None) and not any(look.counts.values()):
        seen["problem"] = "No sample has a label."
    return DataLook.model_validate(seen), shown


def _of_source(source: SampleSource) -> dict[str, object]:
    seen: dict[str, object] = {"kind": source.kind}
    if isinstance(source, ManifestSource | PredictionsSource):
        header = source.header
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
        for name, n in totals.most_common(MAX_CLASSES)
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


MAX_PATH_LENGTH = 4000
IMAGE_SIDE = 160
NETWORK = re.compile(r"^(https?://|transformers:|timm:|[A-Za-z_][\w.]*:[A-Za-z_]\w*$)")


class ChosenData(View):
    """Data that a person named.

    Args:
        source: path of a folder, a table or a tar file.
        columns: role to column, where the names of a table do not tell.
    """

    source: str = Field(min_length=1, max_length=MAX_PATH_LENGTH)
    columns: dict[str, str] = Field(default_factory=dict, max_length=len(ROLES))


class ChosenProject(ChosenData):
    """What a project is made of.

    Args:
        classifier: path of a model file or, where the server listens on this machine only, what `weakspot init --classifier`
            takes; empty: the data says what was predicted.
    """

    classifier: str = Field(default="", max_length=MAX_PATH_LENGTH)


class SetupState(View):
    """How far the set-up is.

    Args:
        project: the project folder.
        source: data as it was named, empty if it was not yet.
        columns: role to column.
        classifier: as it was named, empty if there is none.
        is_written: whether there is a weakspot.toml.
        roots: folders below which data and models may lie.
        may_use_network: whether models may be named by address or by import.
    """

    project: str
    source: str
    columns: dict[str, str]
    classifier: str
    is_written: bool
    roots: list[str]
    may_use_network: bool


class ProjectSetup:
    """The set-up of one project. Every method may be called from several threads.

    Args:
        workspace: what the pages will show; its project is put in place here.
        places: what may be read.
        source: data that the command line named.
        may_use_network: whether models may be named by address or by import, which runs code.
    """

    def __init__(
        self,
        workspace: Workspace,
        places: AllowedPlaces,
        *,
        source: str = "",
        may_use_network: bool = False,
    ) -> None:
        self.places = places
        self.workspace = workspace
        self._source = source
        self._may_use_network = may_use_network
        self._guard = threading.Lock()
        self._shown: list[RawSample] = []

    @property
    def folder(self) -> Path:
        return self.workspace.project.folder

    def state(self) -> SetupState:
        is_written = (self.folder / SETTINGS_FILE).exists()
        settings = self.workspace.project.settings
        source = settings.data.source if is_written else self._source
        return SetupState(
            project=str(self.folder.resolve()),
            source=_whole(self.folder, source) if is_written else source,
            columns=dict(settings.data.columns),
            classifier=_shown_classifier(self.folder, settings.classifier),
            is_written=is_written,
            roots=[str(root.resolve()) for root in self.places.roots],
            may_use_network=self._may_use_network,
        )

    def look(self, chosen: ChosenData) -> DataLook:
        """Look at data; nothing is written.

        Raises:
            ConfigError: if it may not be read, or a role is unknown.
        """
        _check_roles(chosen)
        found, shown = look_at_data(self.places, chosen.source, chosen.columns)
        with self._guard:
            self._shown = shown
        return found

    def image(self, place: int) -> bytes | None:
        """Return a small JPEG of an image of the last look, None if there is none that can be read."""
        with self._guard:
            sample = self._shown[place] if 0 <= place < len(self._shown) else None
        if sample is None:
            return None
        try:
            data = sample.data if sample.data is not None else read_location(sample.location or "")
            return jpeg_of(data, IMAGE_SIDE)
        except (UnreadableImageError, UnreadableLocationError):
            return None

    def write(self, chosen: ChosenProject) -> SetupState:
        """Write weakspot.toml, and make it the project of the pages; earlier answers of the set-up are replaced.

        Raises:
            ConfigError: if something may not be read or is not there, or the project has samples already.
        """
        _check_roles(chosen)
        source = str(self.places.allow(chosen.source))
        classifier = self._classifier(chosen.classifier)
        with self._guard:
            if ProjectStore.open(self.folder).current_tables() is not None:
                raise ConfigError(
                    "The samples of this project were read already.",
                    fix="Change weakspot.toml, or set up another project.",
                )
            before = self.state()
            is_same = classifier == before.classifier
            if not (before.is_written and is_same and source == before.source) or (
                dict(chosen.columns) != before.columns
            ):
                self._replace(source, "" if is_same else classifier, chosen, keeps=is_same)
        return self.state()

    def _replace(self, source: str, classifier: str, chosen: ChosenProject, *, keeps: bool) -> None:
        """Write weakspot.toml; what a person set there by hand otherwise, such as options of the same classifier, stays."""
        settings = _settings(self.folder)
        data = settings.data.model_copy(update={"columns": dict(chosen.columns)})
        model = settings.classifier if keeps else PartSettings()
        settings = settings.model_copy(update={"data": data, "classifier": model})
        Project.create(
            self.folder, data=source, classifier=classifier, settings=settings, overwrite=True
        )
        self.workspace.adopt(Project.open(self.folder))

    def has_run(self) -> bool:
        """Return whether there is something to look at."""
        return bool(self.workspace.project.store.runs.run_ids())

    def _classifier(self, given: str) -> str:
        text = given.strip()
        if not text:
            return ""
        if NETWORK.match(text) and not (self.places.start / text).exists():
            if self._may_use_network:
                return text
            raise ConfigError(
                "Addresses and imports are taken here only while the server listens on this machine alone.",
                where="classifier",
                fix="Choose a model file, or write [classifier] in weakspot.toml.",
            )
        path = str(self.places.allow(text))
        classifier_settings(path)
        return path


def needs_setup(folder: Path, data: Path | None) -> bool:
    """Return whether a folder is one to set a project up in: one without samples.

    Args:
        folder: the project folder.
        data: what the command line names to make a project of, None if nothing.

    Raises:
        ConfigError: if there is no such folder and no data is named, or the project has other data already.
    """
    if not (folder / SETTINGS_FILE).exists():
        if data is None and (folder == Path() or not folder.is_dir()):
            load_settings(folder)
        return True
    settings = load_settings(folder)
    source = (folder / settings.data.source).resolve()
    if data is not None and settings.data.source and source != data.resolve():
        raise ConfigError(
            "This project has other data already.",
            where=str(folder / SETTINGS_FILE),
            given=str(data),
            fix="Give another folder with --project, or leave the data out.",
        )
    if not (folder / DATA_FOLDER).is_dir():
        return True
    return ProjectStore.open(folder).current_tables() is None


def begin_setup(
    folder: Path, *, places: AllowedPlaces, source: str, may_use_network: bool
) -> ProjectSetup:
    """Make a project folder without samples ready to be set up.

    Raises:
        ConfigError: if its weakspot.toml cannot be read.
        StoreError: if the folder cannot be made.
    """
    ProjectStore.create(folder)
    workspace = Workspace(Project(folder, _settings(folder)))
    return ProjectSetup(workspace, places, source=source, may_use_network=may_use_network)


def _settings(folder: Path) -> Settings:
    return load_settings(folder) if (folder / SETTINGS_FILE).exists() else recommended_settings()


def _check_roles(chosen: ChosenData) -> None:
    unknown = sorted(set(chosen.columns) - set(ROLES))
    if unknown:
        raise ConfigError(
            "A column cannot mean this.",
            where="columns",
            given=unknown,
            fix=f"Choose of {', '.join(ROLES)}.",
        )


def _whole(folder: Path, path: str) -> str:
    place = folder / path
    return str(place.resolve()) if path and place.exists() else path


def _shown_classifier(folder: Path, part: PartSettings) -> str:
    named = {name: part.options.get(name) for name in ("path", "url", "target", "model")}
    for name, value in named.items():
        if isinstance(value, str):
            return _whole(folder, value) if name in ("path", "model") else value
    return part.name
