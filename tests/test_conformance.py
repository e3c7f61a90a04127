"""Every registered part, whoever registered it, times every check of its role.

Parts are found by the registry. One that can be built without arguments needs no line here: `BUILDERS` and `SETTINGS` have those
that need some, and settings under which the checks of a slow method are quick.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from tests.data.engine import tiny_engines
from tests.models import (
    tiny_images,
    tiny_models,
    tiny_segmenters,
    tiny_servers,
    tiny_speakers,
)

from weakspot.core.registry import ROLES, part_class, registered
from weakspot.testing import material
from weakspot.testing.checks import checks_for, needed_arguments
from weakspot.testing.fakes import planted_classifier

Factory = Callable[[], object]
Builder = Callable[[Path, ExitStack], Factory]

SETTINGS: dict[tuple[str, str], dict[str, object]] = {
    ("discoverers", "attributes"): {"n_permutations": 19},
    ("discoverers", "directions"): {"costs": (0.01,), "n_outer_folds": 2},
    ("discoverers", "hypothesis"): {"phrases": {"disc": ["green", "dark"]}, "n_permutations": 20},
    ("discoverers", "keywords"): {"n_permutations": 20, "max_candidates": 60},
    ("discoverers", "uncommon-attributes"): {"axes": ("background", "colour")},
    ("rules", "caption"): {"column": "colour", "words": "green"},
    ("repairers", "dfr-subsample"): {"column": "colour"},
    ("repairers", "dfr-upsample"): {"column": "colour"},
    ("repairers", "group-dro"): {"column": "colour"},
}
BUILDERS: dict[tuple[str, str], Builder] = {
    **tiny_models.BUILDERS,
    **tiny_speakers.BUILDERS,
    **tiny_segmenters.BUILDERS,
    **tiny_servers.BUILDERS,
    **tiny_images.BUILDERS,
    **tiny_engines.BUILDERS,
}
NEEDS_NETWORK = {("embedders", "embedded"), ("segmenters", "embedded")}


def _cases() -> Iterator[object]:
    for role in ROLES:
        for name in registered(role):
            marks = [pytest.mark.network] if (role, name) in NEEDS_NETWORK else []
            for check in checks_for(role):
                yield pytest.param(role, name, check, id=f"{role}-{name}-{check}", marks=marks)


@pytest.fixture(scope="module")
def factory_of(tmp_path_factory) -> Iterator[Callable[[str, str], Factory]]:
    built: dict[tuple[str, str], Factory] = {}
    with ExitStack() as stack:

        def factory(role: str, name: str) -> Factory:
            if (role, name) in BUILDERS and (role, name) not in built:
                built[role, name] = BUILDERS[role, name](tmp_path_factory.mktemp("part"), stack)
            settings = SETTINGS.get((role, name), {})
            return built.get((role, name)) or partial(part_class(role, name), **settings)

        yield factory


@pytest.mark.parametrize(("role", "name", "check"), list(_cases()))
def test_part__keeps_its_contract(factory_of, role, name, check):
    checks_for(role)[check](factory_of(role, name))


@pytest.mark.parametrize("check", checks_for("classifiers"))
def test_planted_classifier__multi_label__keeps_its_contract(check):
    checks_for("classifiers")[check](
        lambda: planted_classifier(material.small_world(is_multi_label=True))
    )


def test_discoverer__default_settings_keep_the_contract_of_words():
    checks_for("discoverers")["every_class_gets_a_word"](part_class("discoverers", "directions"))


def test_builders__are_of_registered_parts_and_of_all_that_need_arguments():
    parts = {(role, name) for role in ROLES for name in registered(role)}
    assert {*BUILDERS, *SETTINGS} - parts == set()
    needy = {part for part in parts if needed_arguments(*part)}
    assert needy - {*BUILDERS, *SETTINGS} == set()
