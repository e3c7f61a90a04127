"""Builders of engines that work in other processes; one Ray cluster serves all checks."""

from weakspot.core.registry import part_class


def _processes(_folder, _stack):
    return lambda: part_class("engines", "processes")(n_workers=2)


def _ray(_folder, stack):
    import ray

    stack.callback(ray.shutdown)
    return lambda: part_class("engines", "ray")()


BUILDERS = {("engines", "processes"): _processes, ("engines", "ray"): _ray}
