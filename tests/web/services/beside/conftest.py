"""The small project with slices of several kinds, and another classifier beside it."""

from tests.web.services.slices.conftest import compared, sliced, sliced_folder

__all__ = ["compared", "sliced", "sliced_folder"]
