"""Runs before the tests of backends are collected."""

from weakspot.backends.torchvision_operators import declare_torchvision_operators

declare_torchvision_operators()
