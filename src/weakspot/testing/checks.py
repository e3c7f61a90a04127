"""Conformance checks: what every part of a role must hold, whoever wrote it.

Each takes a factory, a callable that builds a new part, never a part. `checks_for(role)` gives them one by one, for
parametrised tests; `checks_of(package)` all of everything that a package has registered; `check_discoverer(factory)` and its
siblings run all of a role.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.registry import ROLES, part_class, registered
from weakspot.testing import (
    classifier_checks,
    describer_checks,
    discoverer_checks,
    embedder_checks,
    engine_checks,
    language_checks,
    repairer_checks,
    verifier_checks,
)
from weakspot.testing.part_checks import Check, Factory

CATALOGUE: Mapping[str, Mapping[str, Check]] = MappingProxyType(
    {
        "classifiers": classifier_checks.CLASSIFIER_CHECKS,
        "embedders": embedder_checks.CHECKS,
        "captioners": language_checks.CAPTIONER_CHECKS,
        "question_answerers": language_checks.ANSWERER_CHECKS,
        "text_generators": language_checks.TEXT_GENERATOR_CHECKS,
        "image_generators": language_checks.IMAGE_GENERATOR_CHECKS,
        "segmenters": classifier_checks.SEGMENTER_CHECKS,
        "discoverers": discoverer_checks.DISCOVERER_CHECKS,
        "describers": describer_checks.CHECKS,
        "verifiers": verifier_checks.CHECKS,
        "repairers": repairer_checks.CHECKS,
        "engines": engine_checks.CHECKS,
        "rules": discoverer_checks.RULE_CHECKS,
    }
)


def checks_for(role: str) -> dict[str, Check]:
    """Return the checks of a role by name; each takes a factory and raises a ConformanceError.

    >>> "budget_is_kept" in checks_for("repairers")
    True
    """
    if role not in CATALOGUE:
        raise ConfigError(
            f"There is no role {role!r}.", given=role, fix=f"Choose one of {list(CATALOGUE)}."
        )
    return dict(CATALOGUE[role])


def run_checks(role: str, factory: Factory) -> None:
    """Run all checks of a role; the first that fails is raised."""
    for check in checks_for(role).values():
        check(factory)


def check_classifier(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's classifiers keep their contract."""
    run_checks("classifiers", factory)


def check_embedder(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's embedders keep their contract."""
    run_checks("embedders", factory)


def check_captioner(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's captioners keep their contract."""
    run_checks("captioners", factory)


def check_question_answerer(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's question answerers keep their contract."""
    run_checks("question_answerers", factory)


def check_text_generator(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's text generators keep their contract."""
    run_checks("text_generators", factory)


def check_image_generator(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's image generators keep their contract."""
    run_checks("image_generators", factory)


def check_segmenter(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's segmenters keep their contract."""
    run_checks("segmenters", factory)


def check_discoverer(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's discoverers keep their contract."""
    run_checks("discoverers", factory)


def check_describer(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's describers keep their contract."""
    run_checks("describers", factory)


def check_verifier(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's verifiers keep their contract."""
    run_checks("verifiers", factory)


def check_repairer(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's repairers keep their contract."""
    run_checks("repairers", factory)


def check_engine(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's engines keep their contract."""
    run_checks("engines", factory)


def check_rule(factory: Factory) -> None:
    """Raise a ConformanceError unless the factory's membership rules keep their contract."""
    run_checks("rules", factory)


def checks_of(package: str) -> dict[str, Callable[[], None]]:
    """Return every check of every part that a package has registered, by `role: name: check`.

    Each builds the part with its default parameters. Parts that cannot be built without arguments are left out: check them with
    `checks_for(role)` and a factory of your own.

    >>> "discoverers: spotlight: same_seed_same_result" in checks_of("weakspot")
    True
    """
    return {
        f"{role}: {name}: {check_name}": partial(check, partial(_built, role, name))
        for role in ROLES
        for name, point in registered(role).items()
        if point.dist is not None
        and point.dist.name == package
        and not needed_arguments(role, name)
        for check_name, check in checks_for(role).items()
    }


def needed_arguments(role: str, name: str) -> list[str]:
    """Return the arguments without which a registered part cannot be built."""
    given = inspect.signature(part_class(role, name)).parameters.values()
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in given if one.default is one.empty and one.kind not in several]


def _built(role: str, name: str) -> Any:
    return part_class(role, name)()
