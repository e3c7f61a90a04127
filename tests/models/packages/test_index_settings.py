import os

import pytest

from weakspot.models import packages as module
from weakspot.models.packages import (
    DEFAULT_INDEX,
    IndexSettings,
    index_settings,
    read_settings,
)


def test_read_settings__nothing_set_is_the_public_index():
    assert read_settings("") == IndexSettings(addresses=(DEFAULT_INDEX,))


def test_read_settings__indexes_in_order_files_left_out_and_later_lines_win():
    listed = (
        "global.index-url='https://old.example/simple/'\n"
        "global.cert='/etc/certificates.pem'\n"
        "global.extra-index-url='\\nhttps://more.example/simple\\nfile:///opt/simple'\n"
        "download.proxy='http://proxy.example:3128'\n"
        ":env:.index-url='https://me:pass%20word@own.example/simple/'\n"
        "list.format='json'\n"
    )
    found = read_settings(listed)
    assert found == IndexSettings(
        addresses=("https://me:pass%20word@own.example/simple", "https://more.example/simple"),
        proxy="http://proxy.example:3128",
        certificates="/etc/certificates.pem",
    )
    assert found.login("https://own.example/files/x.whl") == {
        "Authorization": "Basic bWU6cGFzcyB3b3Jk"
    }
    assert found.login("https://elsewhere.example/x.whl") == {}


@pytest.mark.parametrize(
    "line",
    [
        "global.no-index='true'",
        ":env:.no-index='1'",
        "global.client-cert='/home/me.pem'",
        "global.trusted-host='index.example'",
    ],
)
def test_read_settings__what_only_pip_can_do(line):
    assert read_settings(line) is None
    assert read_settings("global.no-index='false'") is not None


def test_index_settings__asks_pip(monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "https://own.example/simple")
    found = index_settings()
    assert found is not None
    assert found.addresses[0] == "https://own.example/simple"
    monkeypatch.setattr(module, "pip_command", lambda: None)
    assert index_settings() is None
