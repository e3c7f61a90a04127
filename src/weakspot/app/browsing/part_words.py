"""Registered methods in a sentence each, for people who choose among them."""

import inspect
from typing import Any

from weakspot.app.browsing.view import View
from weakspot.app.config import Settings
from weakspot.app.wiring import build_part, buildable
from weakspot.core.errors import ConfigError
from weakspot.core.registry import part_class, registered


class MethodChoice(View):
    """A method that can be chosen, or why not.

    Args:
        name: registered name.
        sentence: what it does.
        is_configured: whether weakspot.toml names it.
        why_not: why it cannot be used here; empty if it can.
    """

    name: str
    sentence: str
    is_configured: bool
    why_not: str = ""


class MethodChoices(View):
    """All methods of a role."""

    methods: list[MethodChoice]


def discoverer_choices(settings: Settings) -> MethodChoices:
    """Return the methods that failures can be looked for with; baselines are left out."""
    given = settings.discover.parameters
    able = buildable("discoverers", given)
    configured = settings.discover.methods
    found = []
    for name in registered("discoverers"):
        part = _part("discoverers", name)
        if part is None or (name in able and build_part("discoverers", name, given.get(name, {}), where=name).is_baseline):
            continue
        why_not = "" if name in able else "It needs options that weakspot.toml does not give."
        is_configured = name in configured or ("all" in configured and not why_not)
        found.append(MethodChoice(name=name, sentence=first_sentence(part), is_configured=is_configured, why_not=why_not))
    return MethodChoices(methods=found)


def first_sentence(part: Any) -> str:
    """Return what a part does, from the first paragraph of its own documentation.

    >>> first_sentence(int)
    'int([x]) -> integer int(x, base=10) -> integer'
    """
    text = inspect.getdoc(part) or ""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _part(role: str, name: str) -> Any:
    try:
        return part_class(role, name)
    except ConfigError:
        return None
