"""Settings with something else in the place of what is configured."""

from collections.abc import Sequence

from pydantic import JsonValue

from weakspot.pipeline.settings import EngineSettings, Settings


def with_engine(settings: Settings, name: str) -> Settings:
    """Return settings with another engine, if one is named; options stay with the engine they were given for."""
    if not name or name == settings.engine.name:
        return settings
    return settings.model_copy(
        update={"engine": EngineSettings(name=name, provider=settings.engine.provider)}
    )


def with_methods(settings: Settings, methods: Sequence[str]) -> Settings:
    """Return settings with other discoverers, if any are given; parameters of methods that stay keep their values."""
    if not methods:
        return settings
    names = tuple(dict.fromkeys(methods))
    kept = {
        name: given
        for name, given in settings.discover.parameters.items()
        if name in names or "all" in names
    }
    return settings.model_copy(
        update={
            "discover": settings.discover.model_copy(update={"methods": names, "parameters": kept})
        }
    )


def with_phrases(settings: Settings, class_name: str, phrases: Sequence[str]) -> Settings:
    """Return settings in which phrases about a class are the only candidates, confirmed on the confirmation half alone.

    Templates given for the method stay. Not both ways round: the phrases may come from looking at the discovery half.
    """
    given = settings.discover.parameters.get("hypothesis", {})
    parameters: dict[str, dict[str, JsonValue]] = {
        "hypothesis": {**given, "phrases": {class_name: [*phrases]}}
    }
    update = {"methods": ("hypothesis",), "parameters": parameters, "screen_p": 1.0}
    verify = settings.verify.model_copy(update={"scheme": "halves"})
    return settings.model_copy(
        update={"discover": settings.discover.model_copy(update=update), "verify": verify}
    )


def with_repair(
    settings: Settings, *, method: str = "", budget: int | None = None, synthetic: str = ""
) -> Settings:
    """Return settings with another repair, as far as one is given; parameters stay with the method they were given for."""
    chosen = settings.repair
    changes: dict[str, object] = {}
    if method and method != chosen.method:
        changes |= {"method": method, "parameters": {}}
    if budget is not None:
        changes["budget"] = budget
    if synthetic:
        changes["synthetic"] = synthetic
    return settings.model_copy(update={"repair": chosen.model_copy(update=changes)})
