from typing import get_args

import pytest
from tests.models.fake_providers import CUDA, DML, FakeProviders

from weakspot.core.errors import ConfigError
from weakspot.models.onnx import session
from weakspot.models.onnx.session import (
    NAMES,
    PROCESSOR,
    PROVIDERS,
    available_providers,
    choose_provider,
    fallback_notes,
    session_arguments,
)
from weakspot.run.settings import ProviderName

OF_THE_ISSUE = ("cuda", "rocm", "directml", "coreml", "openvino", "xnnpack")


@pytest.fixture(autouse=True)
def forget():
    yield
    session._tried.cache_clear()


def test_available_providers__has_the_processor():
    assert PROCESSOR.full_name in available_providers()


@pytest.mark.parametrize("name", OF_THE_ISSUE)
def test_choose_provider__each_is_taken_where_it_is_installed_and_starts(monkeypatch, name):
    full_name = next(one.full_name for one in PROVIDERS if one.name == name)
    fakes = FakeProviders(full_name).install(monkeypatch)
    assert choose_provider().name == name
    assert fakes.opened[0][0] == full_name
    assert fallback_notes() == ()


def test_choose_provider__the_first_of_several_and_no_tensorrt_unasked(monkeypatch):
    FakeProviders("TensorrtExecutionProvider", DML, CUDA).install(monkeypatch)
    assert choose_provider().name == "cuda"
    assert choose_provider(["auto"]).name == "cuda"
    assert choose_provider(["tensorrt", "cuda"]).name == "tensorrt"
    assert choose_provider([DML]).name == "directml"


@pytest.mark.parametrize(
    ("how", "why"), [("failing", "no such device"), ("silent", "went on without it")]
)
def test_choose_provider__one_that_does_not_start_is_noted_and_left(monkeypatch, how, why):
    FakeProviders(CUDA, DML, **{how: [CUDA]}).install(monkeypatch)
    assert choose_provider().name == "directml"
    (note,) = fallback_notes()
    assert note.startswith(f"{CUDA} is not used: ")
    assert why in note


def test_choose_provider__nothing_starts(monkeypatch):
    FakeProviders(CUDA, failing=[CUDA]).install(monkeypatch)
    assert choose_provider() is PROCESSOR


def test_choose_provider__what_was_asked_for_is_never_replaced(monkeypatch):
    FakeProviders(CUDA, failing=[CUDA]).install(monkeypatch)
    with pytest.raises(ConfigError, match=r"cuda does not start: .*no such device"):
        choose_provider(["cuda"])
    with pytest.raises(ConfigError, match=r"lacks a provider.*DmlExecutionProvider"):
        choose_provider(["directml", "cpu"])
    with pytest.raises(ConfigError, match=r"no such provider.*gpu.*auto, cuda"):
        choose_provider(["gpu"])
    assert choose_provider(["cpu"]) is PROCESSOR


def test_session_arguments__float32_stays_float32_and_the_processor_helps():
    known = {one.name: session_arguments(one, threads=2) for one in PROVIDERS}
    assert known["cpu"] == {"providers": ["CPUExecutionProvider"]}
    assert known["cuda"]["provider_options"] == [{"use_tf32": "0"}, {}]
    assert known["cuda"]["providers"] == [CUDA, "CPUExecutionProvider"]
    assert known["coreml"]["provider_options"][0] == {"ModelFormat": "MLProgram"}
    assert known["xnnpack"]["provider_options"][0] == {"intra_op_num_threads": "2"}


def test_names__are_those_of_the_setting():
    assert set(NAMES) == set(get_args(ProviderName))
