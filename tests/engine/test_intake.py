import pytest

from weakspot.core.errors import ConfigError
from weakspot.engine.intake import Intake, refuse_empty_batches, refuse_negative


def failing_after(count):
    yield from range(count)
    raise OSError("gone")


def test_take__fewer_only_at_the_end():
    intake = Intake(range(5))
    assert (intake.take(3), intake.is_over) == ([0, 1, 2], False)
    assert (intake.take(3), intake.is_over) == ([3, 4], True)
    assert intake.take(3) == []
    intake.raise_error()


def test_take__error_waits_for_its_turn():
    intake = Intake(failing_after(2))
    assert intake.take(5) == [0, 1]
    with pytest.raises(OSError, match="gone"):
        intake.raise_error()


def test_take_batch__cut_off_by_an_error():
    intake = Intake(failing_after(5))
    assert [intake.take_batch(3), intake.take_batch(3)] == [[0, 1, 2], []]


def test_take_batch__last_one_may_be_short():
    intake = Intake(range(5))
    assert [intake.take_batch(3), intake.take_batch(3), intake.take_batch(3)] == [[0, 1, 2], [3, 4], []]


def test_take__interrupt_is_not_kept_back():
    def items():
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Intake(items()).take(2)


def test_refusals():
    refuse_negative("local", n_workers=0)
    refuse_empty_batches(1)
    with pytest.raises(ConfigError, match="engine local must not be negative"):
        refuse_negative("local", n_workers=-1)
    with pytest.raises(ConfigError, match="at least one item"):
        refuse_empty_batches(0)
