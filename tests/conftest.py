from pathlib import Path
from types import SimpleNamespace
import pytest

@pytest.fixture(scope="session")
def demo_outcome():
    return SimpleNamespace(report=next(Path("/tmp/demo-project/.weakspot/runs").glob("*/report.html")))
