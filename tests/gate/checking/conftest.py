import pytest
from tests.build import write_fruit_table

from weakspot.project.project import Project


@pytest.fixture
def table_project(tmp_path):
    """Make a project of a table by name, or make it again with other samples."""

    def made(name="fruit", **given):
        return Project.open(write_fruit_table(tmp_path / name, **given))

    return made
