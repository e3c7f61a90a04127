"""A project that is being set up: what it is made of, and whether it can be opened."""

import re
import threading
from pathlib import Path

from pydantic import Field

from weakspot.core.dataset import RawSample
from weakspot.core.errors import ConfigError
from weakspot.ingest.columns import ROLES
from weakspot.media.images import UnreadableImageError, jpeg_of
from weakspot.media.locations import UnreadableLocationError, read_location
from weakspot.pipeline.settings import SETTINGS_FILE, PartSettings, Settings
from weakspot.pipeline.settings_file import load_settings
from weakspot.project.new_settings import classifier_settings, recommended_settings
from weakspot.project.project import Project
from weakspot.store.project import DATA_FOLDER, ProjectStore
from weakspot.web.services.setup.looking import DataLook, look_at_data
from weakspot.web.services.setup.places import AllowedPlaces
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

LONGEST_PATH = 4000
IMAGE_SIDE = 160
NETWORK = re.compile(r"^(https?://|transformers:|timm:|[A-Za-z_][\w.]*:[A-Za-z_]\w*$)")


class ChosenData(View):
    """Data that a person named.

    Args:
        source: path of a folder, a table or a tar file.
        columns: role to column, where the names of a table do not tell.
    """

    source: str = Field(min_length=1, max_length=LONGEST_PATH)
    columns: dict[str, str] = Field(default_factory=dict, max_length=len(ROLES))


class ChosenProject(ChosenData):
    """What a project is made of.

    Args:
        classifier: path of a model file or, where the server listens on this machine only, what `weakspot init --classifier`
            takes; empty: the data says what was predicted.
    """

    classifier: str = Field(default="", max_length=LONGEST_PATH)


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
