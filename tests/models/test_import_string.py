import sys

import pytest

from weakspot.core.errors import ConfigError, ModelError
from weakspot.models.loading import load_object


def test_load_object__function_and_dotted_name():
    assert load_object("math:sqrt")(9.0) == 3.0
    assert load_object("collections:OrderedDict.fromkeys")("a") == {"a": None}


@pytest.mark.parametrize(
    "target", ["math", "math:", ":sqrt", "math.sqrt", "math:sqrt()", "../x:y", ""]
)
def test_load_object__malformed(target):
    with pytest.raises(ConfigError, match="no import string"):
        load_object(target)


def test_load_object__missing_module_and_name():
    with pytest.raises(ConfigError, match="no module 'nowhere_at_all'"):
        load_object("nowhere_at_all.inner:name")
    with pytest.raises(ConfigError, match="'math' has no 'sqroot'"):
        load_object("math:sqroot")


def test_load_object__from_folder_without_leaving_it_on_the_path(tmp_path):
    (tmp_path / "shop_model_one.py").write_text("def predict():\n    return 7\n")
    before = list(sys.path)
    assert load_object("shop_model_one:predict", folder=tmp_path)() == 7
    assert sys.path == before


def test_load_object__module_that_fails(tmp_path):
    (tmp_path / "shop_model_two.py").write_text("raise RuntimeError('no licence')\n")
    (tmp_path / "shop_model_three.py").write_text("import not_installed_here\n")
    with pytest.raises(ModelError, match="RuntimeError: no licence"):
        load_object("shop_model_two:predict", folder=tmp_path)
    with pytest.raises(ModelError, match="needs the module 'not_installed_here'"):
        load_object("shop_model_three:predict", folder=tmp_path)
