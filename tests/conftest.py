"""What tests of several rooms share because it takes long to make."""

import pytest

from weakspot.app.demo import run_demo


@pytest.fixture(scope="session")
def demo_outcome(tmp_path_factory):
    """What the README's first command gives; its folder is `report.parents[3]`. Copy it before you change it."""
    return run_demo(tmp_path_factory.mktemp("demo") / "weakspot-demo")
