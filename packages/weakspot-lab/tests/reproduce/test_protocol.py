from dataclasses import replace

import pytest

from weakspot.core.errors import ConfigError
from weakspot_lab.reproduce.protocol import Context, open_protocol


def test_open_protocol__no_such_paper(toy_request):
    with pytest.raises(ConfigError, match="no such paper"):
        open_protocol(toy_request)


def test_open_protocol__a_stand_in_and_data(toy_request, tmp_path):
    with pytest.raises(ConfigError, match="needs no data"):
        open_protocol(replace(toy_request, paper="directions", data=tmp_path))


def test_random__depends_on_seed_and_name_only(toy_request):
    first, again = (Context(request=toy_request).random("one").random() for _ in range(2))
    assert first == again
    assert first != Context(request=toy_request).random("two").random()
    assert first != Context(request=replace(toy_request, seed=1)).random("one").random()


def test_shared__is_made_once(toy_request):
    context, made = Context(request=toy_request), []
    assert context.shared("list", lambda: made.append(1) or made) is context.shared("list", list)
    assert made == [1]
