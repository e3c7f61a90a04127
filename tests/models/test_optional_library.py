import pytest

from weakspot.core.errors import MissingExtraError, ModelError
from weakspot.models.loading import first_line, last_line, require_library


def test_require_library__there():
    assert require_library("json.decoder", extra="x", purpose="Things").JSONDecoder is not None


def test_require_library__missing_gives_the_install_command():
    with pytest.raises(
        MissingExtraError,
        match=r"Things need the library 'no_such_library'.*pip install 'weakspot\[hub\]'",
    ):
        require_library("no_such_library.inner", extra="hub", purpose="Things")


def test_require_library__installed_but_broken(tmp_path, monkeypatch):
    (tmp_path / "half_library.py").write_text("import missing_below\n")
    (tmp_path / "odd_library.py").write_text("raise RuntimeError('operator does not exist')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ModelError, match="'half_library' is installed, but 'missing_below', which it needs, is not"
    ):
        require_library("half_library", extra="hub", purpose="Things")
    with pytest.raises(
        ModelError, match="cannot be imported: RuntimeError: operator does not exist"
    ):
        require_library("odd_library", extra="hub", purpose="Things")


def test_lines__of_any_error():
    assert (first_line(ValueError("a\nb")), last_line(ValueError("a\nb"))) == ("a", "b")
    assert (first_line(ValueError()), last_line(ValueError())) == ("ValueError", "ValueError")
