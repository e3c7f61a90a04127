"""Runs before the tests of backends are collected."""

import importlib.util
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.models import tiny_vision_language

from weakspot.models.torch.device import declare_torchvision_operators

declare_torchvision_operators()


def _module(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tiny():
    """Builders of tiny models that speak, see tiny_speakers.py."""
    return _module("tiny_speakers")


@pytest.fixture(scope="session")
def images():
    """Builders of an images endpoint, see tiny_images.py."""
    return _module("tiny_images")


@pytest.fixture
def image_server(images):
    """A real images endpoint on loopback."""
    with ExitStack() as stack:
        yield images.image_server(stack)


@pytest.fixture
def chat_server(tiny):
    """A real chat endpoint on loopback."""
    with ExitStack() as stack:
        yield tiny.chat_server(stack)


@pytest.fixture(scope="session")
def saved(tiny, tmp_path_factory):
    """Return the folder of a tiny model, saved once: `saved("blip")`, `saved("blip", for_questions=True)`."""
    made = {}

    def folder(kind, **options):
        key = (kind, *sorted(options.items()))
        if key not in made:
            builders = vars(tiny) | vars(tiny_vision_language)
            made[key] = builders[f"save_{kind}"](tmp_path_factory.mktemp(kind), **options)
        return made[key]

    return folder
