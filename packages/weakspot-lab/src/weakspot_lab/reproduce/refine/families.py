"""The stand-in: eight families of small networks that learnt classes together with backgrounds (or colours)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from weakspot.core.dataset import Split
from weakspot.project.collective import Family, FamilyMember
from weakspot.project.refine.training import RefineRequest
from weakspot.testing.scenes import FACTORS, KINDS
from weakspot_lab.reproduce.protocol import Context
from weakspot_lab.reproduce.scenes.generators import RenderedPrompts
from weakspot_lab.reproduce.scenes.networks import scene_member, train_on
from weakspot_lab.reproduce.scenes.world import SceneRules, SceneWorld, scene_world, usual_values
from weakspot_lab.small_networks import SHAPES, NetworkShape, ShapedNetwork, ShapedPlan

Factor = Literal["background", "colour"]
FAMILIES: tuple[NetworkShape, ...] = SHAPES
SMALL_FAMILIES: tuple[NetworkShape, ...] = ("coarse", "plain")
WIDTHS = (8, 10, 12, 14, 16)
PATCH_WIDTHS = (4, 5, 6, 7, 8)
EPOCHS = 8
SHARE = 0.6
LAMBDA, K, IMAGES_PER_FAILURE, MAX_IMAGES = 0.5, 3, 5, 40
"""What the paper uses: how much generated images count, values a class, images a failure; at most so many images of one prompt."""
SIZES = {Split.TRAIN: 3000, Split.VALIDATION: 1600, Split.TEST: 1600}
SMALL_SIZES = {Split.TRAIN: 800, Split.VALIDATION: 400, Split.TEST: 200}


@dataclass(frozen=True, kw_only=True, eq=False)
class RefineFamily:
    """Networks of one shape, trained on one world.

    Args:
        shape: which.
        world: the scenes.
        networks: by name, smallest first.
    """

    shape: NetworkShape
    world: SceneWorld
    networks: Mapping[str, ShapedNetwork]

    @cached_property
    def members(self) -> tuple[FamilyMember, ...]:
        return tuple(
            scene_member(self.world, network, name=name) for name, network in self.networks.items()
        )

    @cached_property
    def images(self) -> RenderedPrompts:
        return RenderedPrompts(world=self.world, networks=self.networks)


def family_of(context: Context, shape: NetworkShape, factor: Factor = "background") -> RefineFamily:
    """Return the networks of a shape, trained once a process."""
    return context.shared(f"{factor} {shape}", lambda: _trained(context, shape, factor))


def world_of(context: Context, factor: Factor) -> SceneWorld:
    """Return the scenes on which classes come with values of a factor."""
    rules = SceneRules(
        sizes=context.request.pick(SIZES, SMALL_SIZES),
        allowed={"size": ("medium", "large")},
        factor=factor,
        usual=usual_values(factor, KINDS, 2),
        share=SHARE,
        seed=context.seed_of(factor),
    )
    return context.shared(f"world {factor}", lambda: scene_world(rules))


def _trained(context: Context, shape: NetworkShape, factor: Factor) -> RefineFamily:
    world = world_of(context, factor)
    widths = PATCH_WIDTHS if shape == "patches" else WIDTHS
    plans = [
        ShapedPlan(shape=shape, width=width, seed=place, epochs=context.request.pick(EPOCHS, 5))
        for place, width in enumerate(widths[: context.request.pick(len(widths), 2)])
    ]
    networks = {plan.name: train_on(world, plan) for plan in plans}
    return RefineFamily(shape=shape, world=world, networks=networks)


def families_of(context: Context) -> tuple[NetworkShape, ...]:
    return context.request.pick(FAMILIES, SMALL_FAMILIES)


def refine_request(
    factor: Factor = "background",
    *,
    arms: tuple[str, ...] = (),
    debug_weight: float = LAMBDA,
    n_names: int = K,
) -> RefineRequest:
    """Return the paper's settings: five images a failure, k = 3, lambda = 0.5."""
    return RefineRequest(
        kinds=(factor,),
        n_names=n_names,
        n_each=IMAGES_PER_FAILURE,
        least_each=IMAGES_PER_FAILURE,
        most_each=MAX_IMAGES,
        debug_weight=debug_weight,
        arms=arms,
        predefined=((factor, FACTORS[factor]),),
    )


def mixed_family(context: Context, n_models: int) -> tuple[Family, RenderedPrompts]:
    """Return so many models, one of every family in turn, and images for all of them."""
    own = [family_of(context, shape) for shape in families_of(context)]
    longest = max(len(one.members) for one in own)
    turns = [
        one.members[place] for place in range(longest) for one in own if place < len(one.members)
    ]
    chosen = turns[:n_models]
    networks = {name: network for one in own for name, network in one.networks.items()}
    images = context.shared(
        "images of all", lambda: RenderedPrompts(world=own[0].world, networks=networks)
    )
    return Family.of(chosen), images
