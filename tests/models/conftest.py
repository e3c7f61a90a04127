"""Runs before the tests of backends are collected."""

import importlib.util
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.models import tiny_vision_language
from tests.models.tiny_servers import SERVERS, served

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


@pytest.fixture
def server_of():
    """Return a real endpoint on loopback: `server_of("chat")`, see tiny_servers.py."""
    with ExitStack() as stack:
        yield lambda kind: served(SERVERS[kind], stack)


@pytest.fixture
def image_server(server_of):
    return server_of("images")


@pytest.fixture
def chat_server(server_of):
    return server_of("chat")


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
