import errno

import pytest

from weakspot.cli.refusals import KEPT, out_of_memory, refusal


@pytest.mark.parametrize(
    ("error", "what", "where", "advice"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/p/a.npy"), "No space left on device", "/p/a.npy", "Make room"),
        (PermissionError(errno.EACCES, "Permission denied", b"/p/a"), "Permission denied", "/p/a", "Allow this user"),
        (OSError("written: [Errno 30] Read-only file system: x"), "Read-only file system", None, "writable"),
        (OSError("400 requested and 391 written"), "No space left on device", None, "Make room"),
        (OSError("something of a library"), "something of a library", None, KEPT),
    ],
)
def test_refusal__says_what_where_and_what_to_do(error, what, where, advice):
    found = refusal(error)
    assert found.what == f"The operating system refused: {what}."
    assert found.where == where
    assert advice in found.fix
    assert found.exit_code == 2


def test_refusal__number_without_advice_gives_none():
    assert refusal(OSError(errno.ENXIO, "No such device")).fix is None


def test_out_of_memory__says_what_to_do():
    assert "batch_size" in out_of_memory().fix
