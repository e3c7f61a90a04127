import pickle

import pytest

from weakspot.core.errors import (
    ConfigError,
    DataError,
    InputError,
    MissingExtraError,
    ModelError,
    NotEnoughDataError,
    StoreError,
    UnavailableError,
    WeakspotError,
    raise_all,
)
from weakspot.data.images import UnreadableImageError
from weakspot.data.locations import UnreadableLocationError


def test_weakspot_error__sentence_with_all_parts():
    error = DataError("The label is unknown.", where="row 3", given="aple", fix="Write apple.")
    assert str(error) == "The label is unknown. Where: row 3. Given: 'aple'. To do: Write apple."
    assert (error.what, error.where, error.given, error.fix) == (
        "The label is unknown.",
        "row 3",
        "aple",
        "Write apple.",
    )


def test_weakspot_error__parts_that_were_not_given_are_left_out():
    assert str(WeakspotError("Nothing works.")) == "Nothing works."
    assert str(WeakspotError("Bad.", given=0)) == "Bad. Given: 0."


@pytest.mark.parametrize(
    "kind", [ConfigError, DataError, ModelError, UnavailableError, StoreError, NotEnoughDataError]
)
def test_weakspot_error__one_tree_with_exit_code_2(kind):
    assert issubclass(kind, WeakspotError)
    assert kind("x").exit_code == 2
    assert issubclass(kind, InputError) == (kind in (ConfigError, DataError, ModelError))


def test_missing_extra_error__says_what_to_install():
    error = MissingExtraError("timm", extra="hub", purpose="timm classifiers")
    assert (
        str(error) == "timm classifiers need the library 'timm'. To do: pip install 'weakspot[hub]'"
    )
    assert (error.library, error.extra) == ("timm", "hub")


def test_raise_all__lists_every_problem():
    with pytest.raises(ConfigError) as caught:
        raise_all(
            ["seed is text", "k is 0"],
            error=ConfigError,
            what="Two settings are wrong:",
            where="weakspot.toml",
            fix="Edit it.",
        )
    assert (
        str(caught.value)
        == "Two settings are wrong:\n  1. seed is text\n  2. k is 0\n Where: weakspot.toml. To do: Edit it."
    )


def test_raise_all__no_problems():
    assert raise_all([], error=ConfigError, what="?") is None


@pytest.mark.parametrize(
    "error",
    [
        ModelError("It fails.", where="here", given={"a": 1}, fix="Mend it."),
        MissingExtraError("torch", extra="torch", purpose="Networks"),
        UnreadableImageError("truncated"),
        UnreadableLocationError("missing-file", "a.jpg"),
    ],
)
def test_error__arrives_from_another_process_as_it_was(error):
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))
