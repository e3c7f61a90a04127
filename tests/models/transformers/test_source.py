import socket
import sys

import pytest

from weakspot.core.errors import ConfigError, MissingExtraError, ModelError, UnavailableError
from weakspot.models.transformers.source import SpeakingModel


def _source(model, **options):
    return SpeakingModel(**{"model": model, "device": "cpu", **options})


def test_model__missing_library_is_named_with_the_install_command(monkeypatch, saved):
    folder = saved("llama")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'weakspot\[hub\]'"):
        _source(folder).network("AutoModelForCausalLM")


def test_model__kind_of_number(saved):
    assert (
        str(_source(saved("llama"), dtype="bfloat16").network("AutoModelForCausalLM").dtype)
        == "torch.bfloat16"
    )
    with pytest.raises(ConfigError, match="int8"):
        _source(saved("llama"), dtype="int8").network("AutoModelForCausalLM")


def test_model__numbers_as_they_are_stored(saved, tmp_path):
    _source(saved("llama"), dtype="float16").network("AutoModelForCausalLM").save_pretrained(
        tmp_path
    )
    halves = _source(tmp_path, dtype="auto")
    assert str(halves.network("AutoModelForCausalLM").dtype) == "torch.float16"
    assert halves.identity("x") == _source(tmp_path, dtype="float16").identity("x")


def test_model__spread_by_accelerate(saved):
    source = _source(saved("llama"), device="auto", device_map="auto")
    assert source._loading()["device_map"] == "auto"
    assert source.network("AutoModelForCausalLM").device.type in ("cpu", "cuda", "mps")


def test_settings__wrong_ways_to_load(saved):
    with pytest.raises(ConfigError, match=r"(?s)quantise: must be one of .*give one of them"):
        _source("x", quantise="2-bit", device_map="auto")
    with pytest.raises(UnavailableError, match="pip install bitsandbytes"):
        _source(saved("llama"), quantise="4-bit").network("AutoModelForCausalLM")


def test_load__nothing_is_printed(saved, capfd):
    _source(saved("llama")).network("AutoModelForCausalLM")
    assert capfd.readouterr() == ("", "")


def test_load__weights_that_are_damaged(saved, tmp_path):
    for path in saved("llama").iterdir():
        (tmp_path / path.name).write_bytes(
            path.read_bytes()[: -1000 if path.suffix == ".safetensors" else None]
        )
    with pytest.raises(ModelError, match="cannot load the model: Error while deserializing"):
        _source(tmp_path).network("AutoModelForCausalLM")


def test_load__folder_without_a_model_asks_no_network(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(ModelError, match="cannot load the model"):
        _source(tmp_path).load("AutoConfig")


def test_running__errors_of_a_model_are_named():
    source = _source("some/model")
    with (
        pytest.raises(ModelError, match="The model cannot answer: out of memory Where: some/model"),
        source.running(),
    ):
        raise RuntimeError("out of memory\nTried to allocate 3 GiB")
