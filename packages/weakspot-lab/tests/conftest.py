"""What tests of the lab share with those of the product."""

from tests.conftest import manifest, world

__all__ = ["manifest", "world"]
