import pytest

from weakspot.core.errors import ModelError, UnavailableError
from weakspot.run.model_map import failing_as_model_error, storable


def test_failing_as_model_error__keeps_what_where_and_fix():
    with pytest.raises(ModelError) as caught, failing_as_model_error("captioner"):
        raise UnavailableError("It is down.", where="http://host", fix="Start it.")
    assert (
        str(caught.value)
        == "The captioner cannot be used. It is down. Where: http://host. To do: Start it."
    )
    assert isinstance(caught.value.__cause__, UnavailableError)


def test_failing_as_model_error__model_errors_pass_and_others_are_named():
    error = ModelError("Nonsense.")
    with pytest.raises(ModelError) as caught, failing_as_model_error("captioner"):
        raise error
    assert caught.value is error
    with (
        pytest.raises(ModelError, match="The captioner failed: KeyError: 'x'"),
        failing_as_model_error("captioner"),
    ):
        raise KeyError("x")


def test_failing_as_model_error__interruption_is_no_failure():
    with pytest.raises(KeyboardInterrupt), failing_as_model_error("captioner"):
        raise KeyboardInterrupt


def test_storable__halves_of_characters():
    assert storable("a \ud83d b") == "a ? b"
    assert storable("größe 🐕") == "größe 🐕"
