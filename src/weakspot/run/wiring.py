"""Settings to ready parts: the only place that builds classifiers, embedders, methods and engines."""

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from weakspot.core.errors import ConfigError, WeakspotError, raise_all
from weakspot.core.registry import part_class, registered
from weakspot.core.roles import (
    BatchWork,
    Classifier,
    Describer,
    Discoverer,
    Engine,
    Item,
    Result,
    Verifier,
)
from weakspot.data.remote import RemoteReading, reading_as, remote_reading
from weakspot.run.settings import DiscoverSettings, EngineSettings, PartSettings, Settings
from weakspot.verify.cause import CauseFinder
from weakspot.verify.labels import LabelChecker


@dataclass(frozen=True, kw_only=True)
class ReadingEngine:
    """Sends along with the work how remote images are read, so that neither globals nor the environment have to be changed.

    Args:
        engine: does the work.
        reading: how its workers read.
    """

    engine: Engine
    reading: RemoteReading

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result] | None = None,
    ) -> Iterator[Result]:
        """Yield `function(item)` for every item, as of `Engine`."""
        return self.engine.map(partial(_call, self.reading, function), items, lost=lost)

    def map_batches(
        self,
        build: Callable[[], BatchWork[Item, Result]],
        items: Iterable[Item],
        *,
        batch_size: int,
        lost: Callable[[Item], Result] | None = None,
    ) -> Iterator[Result]:
        """Yield what `build().run` makes of every batch, as of `Engine`."""
        built = partial(_ReadingWork, self.reading, build)
        return self.engine.map_batches(built, items, batch_size=batch_size, lost=lost)


def _call(reading: RemoteReading, function: Callable[[Item], Result], item: Item) -> Result:
    with reading_as(reading):
        return function(item)


class _ReadingWork:
    def __init__(self, reading: RemoteReading, build: Callable[[], BatchWork[Any, Any]]) -> None:
        self._reading = reading
        with reading_as(reading):
            self._work = build()

    def prepare(self, item: Any) -> object:
        with reading_as(self._reading):
            return self._work.prepare(item)

    def run(self, ready: Sequence[Any]) -> Any:
        with reading_as(self._reading):
            return self._work.run(ready)


AUTO = "auto"


def build_part(role: str, name: str, options: Mapping[str, JsonValue], *, where: str) -> Any:
    """Build a registered part from keyword options.

    Raises:
        ConfigError: if the name is unknown, or with every option that the part does not take or misses.
    """
    part = part_class(role, name)
    _check_options(part, options, where=where)
    try:
        return part(**{key: _freeze(value) for key, value in options.items()})
    except WeakspotError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{name!r} cannot be built from its options: {error}.", where=where, given=dict(options)
        ) from error


def buildable(role: str, options: Mapping[str, Mapping[str, JsonValue]]) -> tuple[str, ...]:
    return tuple(
        name
        for name in registered(role)
        if not _missing(part_class(role, name), options.get(name, {}))
    )


def _missing(part: Any, options: Mapping[str, JsonValue]) -> list[str]:
    plain = [
        one
        for one in inspect.signature(part).parameters.values()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    return [
        one.name
        for one in plain
        if one.default is inspect.Parameter.empty and one.name not in options
    ]


def _check_options(part: Any, options: Mapping[str, JsonValue], *, where: str) -> None:
    parameters = inspect.signature(part).parameters
    named = {
        key: one for key, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD
    }
    problems = [f"{key}: is needed" for key in _missing(part, options)]
    if len(named) == len(parameters):
        known = ", ".join(sorted(named)) or "none"
        problems += [
            f"{key}: there is no such option (known: {known})"
            for key in options
            if key not in named
        ]
    raise_all(problems, error=ConfigError, what="Some options cannot be used:", where=where)


def _freeze(value: JsonValue) -> Any:
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def resolved_options(options: Mapping[str, JsonValue], folder: Path | None) -> dict[str, Any]:
    """Return options with every text that names a file or folder below `folder` made a path that works from anywhere."""
    return {key: _resolve(value, folder) for key, value in options.items()}


def _resolve(value: JsonValue, folder: Path | None) -> Any:
    if isinstance(value, Mapping):
        return resolved_options(value, folder)
    if isinstance(value, str) and value and folder is not None and (folder / value).exists():
        return os.path.abspath(folder / value)
    return value


def with_provider(role: str, name: str, options: dict[str, Any], provider: str) -> dict[str, Any]:
    """Return the options of a part with the project's execution provider, if it takes one and has none of its own."""
    takes = inspect.signature(part_class(role, name)).parameters
    if provider == AUTO or "providers" not in takes:
        return options
    return {"providers": (provider,), **options}


def build_classifier(
    settings: PartSettings, folder: Path, *, provider: str = AUTO
) -> Classifier | None:
    """Return the classifier that is configured, or None when only predictions are given.

    Args:
        settings: section `classifier` of weakspot.toml.
        folder: where relative paths start.
        provider: the project's execution provider.
    """
    if not settings.name:
        return None
    options = with_provider(
        "classifiers", settings.name, resolved_options(settings.options, folder), provider
    )
    return cast(
        Classifier, build_part("classifiers", settings.name, options, where="[classifier] options")
    )


def build_engine(settings: Settings) -> Engine:
    """Return the engine that is configured; its workers read remote images as configured, too."""
    engine = cast(
        Engine,
        build_part(
            "engines", settings.engine.name, settings.engine.options, where="[engine] options"
        ),
    )
    reading = remote_reading_for(settings)
    # Workers find the environment by themselves.
    if reading == RemoteReading.from_environment():
        return engine
    return ReadingEngine(engine=engine, reading=reading)


def build_thread_engine(n_threads: int) -> Engine:
    """Return an engine of threads for many short questions to servers, whatever engine is configured."""
    name = EngineSettings().name
    return cast(Engine, build_part("engines", name, {"n_workers": n_threads}, where=name))


def remote_reading_for(settings: Settings) -> RemoteReading:
    """Return how remote images are read; what the settings leave open stays as it is here and now."""
    given = settings.data.model_dump(
        include=settings.data.model_fields_set & {"cache_megabytes", "cache_folder"}
    )
    return dataclasses.replace(remote_reading(), **given)


def engine_elsewhere(settings: Settings) -> Engine | None:
    """Return the engine that is configured if it works in other processes; None if it works in threads of this one."""
    return None if settings.engine.name == EngineSettings().name else build_engine(settings)


def build_discoverers(settings: Settings) -> dict[str, Discoverer]:
    """Return the discoverers that are configured, by name.

    `all` stands for every registered one that is no baseline and got the options that it needs; `auto` for those that say that they
    take part in it, quick ones first, and for those whose parameters are given.

    Raises:
        ConfigError: if parameters are given for a method that is not among them.
    """
    chosen = settings.discover
    given = automatic_parameters(chosen)
    wanted = _wanted_methods(chosen)
    unused = sorted(set(chosen.parameters) - set(wanted))
    if unused:
        raise ConfigError(
            "There are parameters for methods that are not used.",
            where="[discover] parameters",
            given=unused,
            fix="Add them to methods.",
        )
    built = {
        name: cast(
            Discoverer,
            build_part(
                "discoverers",
                name,
                given.get(name, {}),
                where=f"[discover] parameters.{name}",
            ),
        )
        for name in dict.fromkeys(wanted)
    }
    return {
        name: part
        for name, part in built.items()
        if "all" not in chosen.methods or not part.is_baseline
    }


def automatic_methods() -> dict[str, Any]:
    """Return the classes of the methods that take part in `auto`, quick ones first; a plug-in that cannot be imported is left out."""
    classes: dict[str, Any] = {}
    for name in registered("discoverers"):
        with suppress(ConfigError):
            classes[name] = part_class("discoverers", name)
    places = {name: getattr(part, "auto_place", None) for name, part in classes.items()}
    ranked = sorted((place, name) for name, place in places.items() if place is not None)
    return {name: classes[name] for _, name in ranked}


def automatic_parameters(chosen: DiscoverSettings) -> dict[str, dict[str, JsonValue]]:
    """Return the parameters of methods, with those of `auto` for what it chose and nobody named or set."""
    parameters = {name: dict(given) for name, given in chosen.parameters.items()}
    if AUTO in chosen.methods:
        for name, part in automatic_methods().items():
            added = {} if name in chosen.methods else getattr(part, "auto_parameters", {})
            if added:
                parameters[name] = {**added, **parameters.get(name, {})}
    return parameters


def _wanted_methods(chosen: DiscoverSettings) -> tuple[str, ...]:
    if "all" in chosen.methods:
        return buildable("discoverers", chosen.parameters)
    named = [name for name in chosen.methods if name != AUTO]
    automatic = [*automatic_methods(), *chosen.parameters] if AUTO in chosen.methods else []
    return tuple(dict.fromkeys([*automatic, *named]))


def build_describer(settings: Settings) -> Describer:
    chosen = settings.describe
    return cast(
        Describer,
        build_part("describers", chosen.method, chosen.parameters, where="[describe] parameters"),
    )


def build_verifier(settings: Settings, *, part: float = 1.0) -> Verifier:
    """Return the verifier that is configured; with several folds each is allowed its part of the error rate.

    Raises:
        ConfigError: if there are several folds and the verifier has no `alpha` to divide among them.
    """
    chosen = settings.verify
    verifier = cast(
        Verifier,
        build_part("verifiers", chosen.method, chosen.parameters, where="[verify] parameters"),
    )
    if part == 1.0:
        return verifier
    if not hasattr(verifier, "alpha"):
        raise ConfigError(
            "Cross-fitting needs a verifier with a setting alpha.",
            where="[verify] scheme",
            given=chosen.method,
        )
    return cast(
        Verifier,
        dataclasses.replace(cast(Any, verifier), alpha=cast(Any, verifier).alpha * part),
    )


def build_cause_finder() -> CauseFinder:
    """Return what looks into the causes of confirmed slices."""
    return CauseFinder()


def build_label_checker() -> LabelChecker:
    """Return what looks for wrong labels."""
    return LabelChecker()
