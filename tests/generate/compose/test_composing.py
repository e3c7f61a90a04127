import dataclasses

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.generated import nothing_found
from weakspot.generate.compose.generator import ComposeGenerator, images_of_folder
from weakspot.generate.quality import fingerprint_of


@pytest.fixture
def folder(tmp_path, shapes):
    planted, _ = shapes
    for kind in ("disc", "star"):
        (tmp_path / kind).mkdir()
        for number in range(2):
            planted(kind, instance=number).save(tmp_path / kind / f"{number}.png")
    place = tmp_path / "backgrounds" / "green_grass"
    place.mkdir(parents=True)
    Image.fromarray(np.random.default_rng(0).integers(40, 120, (90, 140, 3), dtype=np.uint8)).save(
        place / "a.jpg"
    )
    (tmp_path / "disc" / "notes.txt").write_text("no image")
    (tmp_path / "disc" / "2.jpg").write_bytes((place / "a.jpg").read_bytes()[:300])
    Image.new("L", (128, 128), 255).save(tmp_path / "star" / "0.png_mask.png")
    Image.new("L", (128, 128), 255).save(tmp_path / "star" / "1_mask.png")
    return tmp_path


def test_images_of_folder__finds_classes_backgrounds_and_masks(folder):
    own = images_of_folder(str(folder))
    assert own.class_names == ("disc", "star")
    assert own.objects("disc") == ["disc/0.png", "disc/1.png", "disc/2.jpg"]
    assert own.objects("star") == ["star/0.png", "star/1.png"]
    assert own.objects("ring") == []
    assert own.background_words == ("green grass",)
    assert (
        own.backgrounds("green grass")
        == own.backgrounds("on green grass")
        == ["backgrounds/green_grass/a.jpg"]
    )
    assert own.backgrounds("sand") == []
    assert own.mask("disc/0.png") is None
    assert {own.mask(name).mode for name in own.objects("star")} == {"L"}
    assert own.image("backgrounds/green_grass/a.jpg").size == (140, 90)


def test_images_of_folder__digest_follows_the_content(folder):
    before = images_of_folder(str(folder)).digest
    assert images_of_folder(str(folder)).digest == before
    Image.new("RGB", (20, 20)).save(folder / "disc" / "1.png")
    assert images_of_folder(str(folder)).digest != before


def test_images_of_folder__says_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        images_of_folder(str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="no images in folders of classes"):
        images_of_folder(str(tmp_path))


def test_compose__draws_from_a_folder(folder, shapes):
    planted, true_mask = shapes
    for number in range(2):
        mask = true_mask(planted("disc", instance=number), "red")
        Image.fromarray(mask).save(folder / "disc" / f"{number}_mask.png")
    compose = ComposeGenerator(images=str(folder), side=64)
    found = compose.generate(["a photo of a blue disc on green grass"], seeds=[1])[0]
    assert found.parents[0] in ("disc/0.png", "disc/1.png")
    assert found.parents[1] == "backgrounds/green_grass/a.jpg"
    assert compose.generator_id.startswith("compose-3-64-")


SIDE = 96


@pytest.fixture
def compose(own):
    return ComposeGenerator(side=SIDE).with_images(own)


def _one(compose, prompt, seed=0):
    return compose.generate([prompt], seeds=[seed])[0]


def _pixels(compose, prompt, seed=0):
    return np.asarray(_one(compose, prompt, seed).image).astype(int)


def _share_of(compose, prompt, seed=0):
    """Share of strongly coloured pixels: the planted backgrounds are muted."""
    return (np.ptp(_pixels(compose, prompt, seed), axis=2) > 110).mean()


def _middle_of(compose, prompt, seed=0):
    rows, columns = np.nonzero(np.ptp(_pixels(compose, prompt, seed), axis=2) > 110)
    return columns.mean() / SIDE, rows.mean() / SIDE


def test_generate__gives_square_rgb_images_with_their_parents(compose):
    found = compose.generate(["a photo of a disc on grass", "a photo of a star"], seeds=[1, 2])
    assert [(one.image.mode, one.image.size) for one in found] == [("RGB", (SIDE, SIDE))] * 2
    assert [(one.prompt, one.seed) for one in found] == [
        ("a photo of a disc on grass", 1),
        ("a photo of a star", 2),
    ]
    assert found[0].parents[0].startswith("disc-")
    assert found[0].parents[1].startswith("grass-")
    assert len(found[1].parents) == 1
    assert {one.generator_id for one in found} == {compose.generator_id}


def test_generate__is_decided_by_prompt_and_seed_alone(own, compose):
    prompts = [
        "a photo of a disc on grass",
        "a photo of two stars in fog",
        "a photo of a disc, partly hidden, in the rain",
    ]
    batch = [one.image.tobytes() for one in compose.generate(prompts, seeds=[5, 6, 7])]
    fresh = ComposeGenerator(side=SIDE).with_images(own)
    assert (
        batch
        == [
            _one(fresh, prompt, seed).image.tobytes()
            for prompt, seed in reversed(list(zip(prompts, (5, 6, 7), strict=True)))
        ][::-1]
    )
    assert _one(compose, prompts[0], 8).image.tobytes() != batch[0]


@pytest.mark.parametrize("seed", range(4))
def test_generate__keeps_object_and_placement_when_only_the_background_differs(compose, seed):
    prompts = [
        f"a photo of a disc {place}"
        for place in ("on grass", "on bricks", "on stripes", "on a white background")
    ]
    found = compose.generate(prompts, seeds=[seed] * 4)
    assert len({one.parents[0] for one in found}) == 1
    assert {one.parents[0] for one in found} == {
        _one(compose, "a dark photo of a disc", seed).parents[0]
    }
    pixels = np.stack([np.asarray(one.image).astype(int) for one in found])
    is_object = np.ptp(pixels, axis=3) > 110
    overlap = is_object.all(axis=0).sum() / is_object.any(axis=0).sum()
    assert overlap > 0.85
    assert np.abs(pixels[0] - pixels[1])[is_object.all(axis=0)].mean() < 25
    assert np.abs(pixels[0] - pixels[1])[~is_object.any(axis=0)].mean() > 25


def test_generate__size_and_number_change_the_share(compose):
    plain = _share_of(compose, "a photo of a disc on grass")
    assert _share_of(compose, "a photo of a small disc on grass") < 0.4 * plain
    assert _share_of(compose, "a photo of a large disc on grass") > 1.5 * plain
    one, two, three = (
        _share_of(compose, f"a photo of {n} small disc{s} on bricks")
        for n, s in (("one", ""), ("two", "s"), ("three", "s"))
    )
    assert one < two < three


def test_generate__positions_are_where_they_say(compose):
    found = {
        place: _middle_of(compose, f"a photo of a small disc {place}, on grass")
        for place in ("on the left", "on the right")
    }
    found |= {
        place: _middle_of(compose, f"a photo of a small disc {place}, on grass")
        for place in ("at the top", "at the bottom")
    }
    assert found["on the left"][0] < 0.4
    assert found["on the right"][0] > 0.6
    assert found["at the top"][1] < 0.4
    assert found["at the bottom"][1] > 0.6


def test_generate__colours_the_object_and_not_the_background(compose):
    blue, pink = (
        _pixels(compose, f"a photo of a {colour} disc on grass", 2) for colour in ("blue", "pink")
    )
    middle = blue[SIDE // 2 + 4, SIDE // 2]
    assert middle[2] > middle[0] + 50
    assert np.abs(blue[:8] - pink[:8]).max() == 0


def test_generate__colour_is_known_from_objects_whose_outline_is_not_sure(own):
    """Refused masks are used for nothing else; without them a painter's green was taken where few masks are sure."""

    def found(name, kind):
        coverage, refused = own.found(name, kind)
        return coverage, "not sure" if name.startswith("disc-blue") else refused

    shown = dataclasses.replace(
        own,
        coloured=lambda class_name, colour: [f"disc-blue-{number}" for number in range(3)],
        found=found,
    )
    compose, without = (
        ComposeGenerator(side=SIDE).with_images(one)
        for one in (shown, dataclasses.replace(own, objects=lambda class_name: ["disc-red-0"]))
    )
    purple, painters = (
        _pixels(one, "a photo of a purple disc", 4)[48, 48] for one in (compose, without)
    )
    assert purple[0] < painters[0] - 30
    assert {_one(compose, "a photo of a disc", seed).parents[0][:8] for seed in range(8)} == {
        "disc-red"
    }


def test_generate__in_its_own_colour_hardly_changes_it(own, compose):
    plain = _pixels(compose, "a photo of a disc", 3)
    painted = _pixels(compose, "a photo of a disc in its own colour", 3)
    assert np.abs(plain - painted).mean() < 2.0
    assert compose.control_for("a photo of a green disc") == "in its own colour"
    assert compose.control_for("a photo of a disc on grass") == "on its own background"
    assert compose.control_for("a photo of a disc at night") == ""


def test_parents_of__is_what_is_drawn(compose):
    for seed in range(6):
        for prompt in ("a photo of a disc", "a photo of a disc on grass"):
            drawn = _one(compose, prompt, seed).parents[0]
            assert compose.parents_of(prompt, seed) == (drawn,)


def test_generate__blurred_background_leaves_the_object_sharp(compose):
    for place in ("", " on bricks"):
        sharp = _pixels(compose, f"a photo of a disc{place}", 1)
        soft = _pixels(compose, f"a photo of a disc{place}. the background is blurred.", 1)
        edges = [np.abs(np.diff(one[:16].mean(axis=2), axis=1)).mean() for one in (sharp, soft)]
        assert edges[1] < 0.6 * edges[0]
        assert np.abs(sharp - soft)[46:54, 46:54].mean() < 12


def test_generate__says_how_many_were_tried_and_why_none_could_be_used(own):
    flat = dataclasses.replace(
        own,
        objects=lambda class_name: [f"flat-{n}" for n in range(7)] + ["disc-broken"],
        image=_flat_image(own.image),
        found=lambda _name, _kind: (np.zeros((64, 64), dtype=np.float32), ""),
    )
    compose = ComposeGenerator(side=SIDE, n_tried=8).with_images(flat)
    with pytest.raises(
        ModelError,
        match="8 of 8 images were tried .7 times hardly anything was found; 1 times .* cannot be read",
    ):
        _one(compose, "a photo of a disc")


def _flat_image(otherwise):
    return lambda name: (
        Image.new("RGB", (64, 64), (90, 120, 90)) if name.startswith("flat") else otherwise(name)
    )


def test_generate__object_that_the_edge_cuts_gets_another_backdrop_where_it_is_but_is_not_moved(
    own,
):
    left = np.zeros((128, 128), dtype=np.float32)
    left[20:110, :60] = 1.0
    cut = dataclasses.replace(
        own,
        objects=lambda class_name: ["disc-red-0", "disc-red-1"],
        found=lambda name, kind: (left, "") if name == "disc-red-0" else own.found(name, kind),
    )
    compose = ComposeGenerator(side=SIDE).with_images(cut)

    def shown(prompt):
        return {_one(compose, prompt, seed).parents[0] for seed in range(8)}

    assert shown("a photo of a blue disc") == {"disc-red-0", "disc-red-1"}
    assert shown("a photo of a disc on grass") == {"disc-red-0", "disc-red-1"}
    assert shown("a photo of a small disc on grass") == {"disc-red-1"}
    seed = next(
        seed
        for seed in range(8)
        if compose.parents_of("a photo of a disc", seed) == ("disc-red-0",)
    )
    plain, control, grass = (
        _pixels(compose, f"a photo of a disc{place}", seed)
        for place in ("", " on its own background", " on grass")
    )
    inside = np.s_[24:72, 4:36]
    assert np.abs(plain - control)[inside].mean() < 12
    assert np.abs(plain - grass)[inside].mean() < 25
    assert np.abs(plain - grass)[:, 60:].mean() > 25


def test_generate__object_that_fills_the_image_gets_no_other_backdrop(own):
    most = np.zeros((128, 128), dtype=np.float32)
    most[:, :100] = 1.0
    full = dataclasses.replace(
        own, objects=lambda class_name: ["disc-red-0"], found=lambda name, kind: (most, "")
    )
    compose = ComposeGenerator(side=SIDE).with_images(full)
    assert _one(compose, "a photo of a blue disc").parents == ("disc-red-0",)
    with pytest.raises(ModelError, match="too little of what is behind it"):
        _one(compose, "a photo of a disc on grass")


def test_seed_of_view__shows_the_same_object_in_another_way(compose):
    for prompt in ("a photo of a disc", "a photo of a disc on grass"):
        seeds = [compose.seed_of_view(7, number) for number in range(4)]
        found = [_one(compose, prompt, seed) for seed in seeds]
        assert seeds[0] == 7
        assert len({one.parents[0] for one in found}) == 1
        assert [compose.parents_of(prompt, seed)[0] for seed in seeds] == [
            one.parents[0] for one in found
        ]
        prints = [fingerprint_of(one.image) for one in found]
        assert not any(
            one.is_near(other, 3)
            for place, one in enumerate(prints)
            for other in prints[place + 1 :]
        )
        assert _one(compose, prompt, seeds[2]).image.tobytes() == found[2].image.tobytes()


def test_seed_of_view__a_change_is_made_to_the_same_view(compose):
    seed = compose.seed_of_view(7, 2)
    plain, dark = (_pixels(compose, f"a {light}photo of a disc", seed) for light in ("", "dark "))
    assert np.corrcoef(plain.mean(axis=2).ravel(), dark.mean(axis=2).ravel())[0, 1] > 0.95


def test_generate__without_masks_and_segmenter_says_so(own):
    compose = ComposeGenerator(side=SIDE).with_images(dataclasses.replace(own, found=nothing_found))
    with pytest.raises(ModelError, match=r"no segmenter is configured \(\[segmenter\] name\)"):
        _one(compose, "a photo of a disc")


def test_generate__refuses_a_class_without_images(compose):
    with pytest.raises(ModelError, match="no images of the class 'heart'"):
        _one(compose, "a photo of a heart")


def test_generate__refuses_what_it_cannot_draw_and_says_what_it_can(compose):
    with pytest.raises(
        RefusedPromptError,
        match="'on the moon'.*disc, star, heart; backgrounds: grass, bricks, stripes",
    ):
        _one(compose, "a photo of a disc on the moon")


def test_generate__refuses_backgrounds_of_which_none_can_be_read(own):
    broken = dataclasses.replace(
        own, backgrounds=lambda words: ["grass-broken"] if words == "grass" else []
    )
    with pytest.raises(
        RefusedPromptError, match="'grass' cannot be read, or also show things of other classes"
    ):
        _one(ComposeGenerator(side=SIDE).with_images(broken), "a photo of a disc on grass")


def test_generate__what_another_class_shows_is_no_background_unless_it_can_be_removed(own):
    """A heap of stars cannot be cut out: discs on it would be labelled disc and show stars."""
    pixels = np.tile(np.asarray(own.image("star-blue-0").resize((32, 32))), (4, 4, 1))

    def image(name):
        return Image.fromarray(pixels) if name.endswith("heap") else own.image(name)

    def objects(class_name):
        return [*own.objects(class_name), f"{class_name}-heap"]

    heaps = dataclasses.replace(
        own,
        image=image,
        objects=objects,
        backgrounds=lambda words: [f"{words}-heap"] if words in ("star", "disc") else [],
        found=lambda name, kind: (
            (np.ones((8, 8), dtype=np.float32), "")
            if name.endswith("heap")
            else own.found(name, kind)
        ),
    )
    compose = ComposeGenerator(side=SIDE).with_images(heaps)
    with pytest.raises(RefusedPromptError, match="other classes"):
        _one(compose, "a photo of a disc. the background is star.")
    assert _one(compose, "a photo of a star. the background is star.").parents[1] == "star-heap"


def test_generate__removes_the_object_of_a_background(own):
    shown = dataclasses.replace(
        own, backgrounds=lambda words: ["star-blue-0"] if words == "plain" else []
    )
    found = _one(
        ComposeGenerator(side=SIDE).with_images(shown),
        "a photo of a small red disc in the plain. it is on the left.",
        1,
    )
    assert found.parents[1] == "star-blue-0"
    pixels = np.asarray(found.image).astype(int)
    assert ((pixels[..., 2] - pixels[..., 0]) > 60).mean() < 0.005


def test_generate__needs_images_and_as_many_seeds_as_prompts(compose):
    with pytest.raises(ConfigError, match="no images to compose from"):
        ComposeGenerator().generate(["a photo of a disc"], seeds=[0])
    with pytest.raises(ConfigError, match="one seed"):
        compose.generate(["a photo of a disc"], seeds=[])


def test_generator_id__tells_images_and_parameters_apart(own, compose):
    others = [
        ComposeGenerator(side=SIDE + 1).with_images(own),
        ComposeGenerator(side=SIDE).with_images(dataclasses.replace(own, digest="others")),
    ]
    assert len({compose.generator_id, *(one.generator_id for one in others)}) == 3
    assert compose.generator_id == ComposeGenerator(side=SIDE).with_images(own).generator_id
