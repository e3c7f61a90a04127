"""Runs before the tests of backends are collected."""

from contextlib import ExitStack

import pytest
from tests.models.tiny_servers import SERVERS, served

from weakspot.models.torch.runtime import declare_torchvision_operators

declare_torchvision_operators()


@pytest.fixture(scope="session")
def tiny():
    """Builders of tiny models that speak, see tiny_speakers.py."""
    from tests.models import tiny_speakers

    return tiny_speakers


@pytest.fixture
def one_thread():
    """Let torch compute by one thread, so that sums are rounded in one order."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


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
    from tests.models import tiny_editors, tiny_pipelines, tiny_segmenters, tiny_vision_language

    made = {}

    def folder(kind, **options):
        key = (kind, *sorted(options.items()))
        if key not in made:
            modules = (tiny, tiny_vision_language, tiny_segmenters, tiny_pipelines, tiny_editors)
            builders = {name: made_by for one in modules for name, made_by in vars(one).items()}
            place = tmp_path_factory.mktemp("tiny") / kind
            place.mkdir()
            made[key] = builders[f"save_{kind}"](place, **options) or place
        return made[key]

    return folder
