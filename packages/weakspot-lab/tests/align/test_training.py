import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.errors import ConfigError, DataError
from weakspot_lab.align.pairs import PairGroup, group_from_texts, split_group
from weakspot_lab.align.training import AlignParameters, fit_text_side, held_out_recall, ridge_map

QUICK = AlignParameters(hidden=16, steps=60, batch_size=32, evaluate_every=20, learning_rate=5e-3)


def bent_world(n_images: int = 120) -> PairGroup:
    """Image embeddings of 6 numbers that are a bent function of sentence embeddings of 5."""
    rng = np.random.default_rng(0)
    sentences = unit_rows(rng.standard_normal((n_images, 5)))
    images = np.abs(
        sentences @ rng.standard_normal((5, 6))
    ) + 0.3 * sentences @ rng.standard_normal((5, 6))
    texts = [[f"text {row}"] for row in range(n_images)]
    return group_from_texts(
        "bent", images, texts, {f"text {row}": embedding for row, embedding in enumerate(sentences)}
    )


def test_ridge_map__recovers_a_line() -> None:
    inputs = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)

    weights, bias = ridge_map(inputs, 2.0 * inputs + 1.0, 1e-9)

    np.testing.assert_allclose(weights, [[2.0]], rtol=1e-5)
    np.testing.assert_allclose(bias, [1.0], rtol=1e-5)


def test_ridge_map__penalty_shrinks_the_slope() -> None:
    inputs = np.array([[-1.0], [1.0]], dtype=np.float32)

    weights, _ = ridge_map(inputs, inputs, 1.0)

    # Sum of squares 2 over 2 + 1 * 2 pairs.
    np.testing.assert_allclose(weights, [[0.5]], rtol=1e-6)


def test_fit_text_side__contrastive_beats_ridge_in_a_bent_world() -> None:
    learn, held = split_group(bent_world(400), 0.25, seed=1)

    ridge = fit_text_side([learn], held, AlignParameters(loss="ridge"))
    bent = fit_text_side(
        [learn],
        held,
        AlignParameters(hidden=64, steps=300, batch_size=64, evaluate_every=50, learning_rate=5e-3),
    )

    assert held_out_recall(bent.projection, held) > held_out_recall(ridge.projection, held) + 0.1
    assert bent.best_step > 0
    assert len(ridge.projection.hidden_bias) == 0


def test_fit_text_side__same_seed_same_weights() -> None:
    learn, held = split_group(bent_world(), 0.2, seed=1)

    first, second = (fit_text_side([learn], held, QUICK) for _ in range(2))

    np.testing.assert_array_equal(first.projection.linear, second.projection.linear)
    assert first.history == second.history


def test_fit_text_side__keeps_the_best_look() -> None:
    learn, held = split_group(bent_world(), 0.2, seed=1)

    result = fit_text_side([learn], held, QUICK)

    recalls = dict(result.history)
    assert held_out_recall(result.projection, held) == recalls[result.best_step]
    assert recalls[result.best_step] == max(recall for step, recall in result.history if step > 0)


def test_fit_text_side__stops_when_nothing_is_gained() -> None:
    learn, held = split_group(bent_world(), 0.2, seed=1)
    looks: list[int] = []

    fit_text_side(
        [learn],
        held,
        AlignParameters(
            hidden=4, steps=1000, batch_size=8, evaluate_every=1, patience=3, learning_rate=1e-9
        ),
        progress=lambda step, steps, recall: looks.append(step),
    )

    assert looks == [1, 2, 3, 4]


def test_fit_text_side__learns_to_overlook_a_nuisance() -> None:
    learn, held = split_group(bent_world(300), 0.2, seed=1)
    push = np.zeros((1, 6), dtype=np.float32)
    push[0, 0] = 0.8
    moved = PairGroup(
        name="moved",
        image_embeddings=unit_rows(unit_rows(held.image_embeddings) + push),
        text_embeddings=held.text_embeddings,
        pair_images=held.pair_images,
        pair_texts=held.pair_texts,
    )
    parameters = AlignParameters(
        hidden=32,
        steps=200,
        batch_size=64,
        evaluate_every=200,
        learning_rate=5e-3,
        nuisance_share=0.8,
    )

    unaware = fit_text_side([learn], held, parameters)
    aware = fit_text_side([learn], held, parameters, nuisance=push)

    assert held_out_recall(aware.projection, moved, 3) > held_out_recall(
        unaware.projection, moved, 3
    )


def test_fit_text_side__nothing_to_learn_from() -> None:
    with pytest.raises(DataError, match="nothing to learn from"):
        fit_text_side([], bent_world(), QUICK)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"loss": "hinge"}, r"align\.loss.*'hinge'"), ({"steps": 0}, r"align\.steps")],
)
def test_align_parameters__refused(given, said) -> None:
    with pytest.raises(ConfigError, match=said):
        AlignParameters(**given)


def test_fit_text_side__tolerance_prefers_later_weights() -> None:
    learn, held = split_group(bent_world(), 0.2, seed=1)

    result = fit_text_side(
        [learn],
        held,
        AlignParameters(hidden=16, steps=60, batch_size=32, evaluate_every=20, tolerance=1.0),
    )

    assert result.best_step == 60
