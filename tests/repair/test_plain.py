from weakspot.repair.plain import PlainRepairer


def test_select__everything_counts_once(training, make_slice):
    chosen = PlainRepairer().select([make_slice()], training=training, pool=training, budget=5, seed=0)
    assert chosen.rows.tolist() == list(range(12))
    assert chosen.weights.tolist() == [1.0] * 12
    assert PlainRepairer().is_baseline
