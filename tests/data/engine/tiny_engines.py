"""Builders of engines; one Ray cluster serves all checks."""

from functools import partial

from weakspot.core.registry import part_class
from weakspot.data.engine.cluster import load_ray


def _local(_folder, _stack):
    return part_class("engines", "local")


def _processes(_folder, _stack):
    return partial(part_class("engines", "processes"), n_workers=2)


def _ray(_folder, stack):
    stack.callback(load_ray(loopback_only=True).shutdown)
    return part_class("engines", "ray")


BUILDERS = {
    ("engines", "local"): _local,
    ("engines", "processes"): _processes,
    ("engines", "ray"): _ray,
}
