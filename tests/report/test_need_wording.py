from weakspot.core.repairs import GainEstimate, SliceNeed
from weakspot.report.repairs import need_sentences

NEED = SliceNeed(
    slice_id="a",
    title="cat: green",
    rate_inside=0.5,
    rate_outside=0.1,
    n_inside=200,
    n_outside=800,
    n_evaluation=2000,
    n_training=40,
    n_class_training=1040,
    n_pool=120,
    n_pool_labelled=100,
    n_to_match=210,
    exponent=0.5,
    n_kinds=6,
    estimates=(GainEstimate(gain=0.2, n_rows=50), GainEstimate(gain=0.4, n_rows=960)),
)


def test_need_sentences__estimates_say_that_they_are_some():
    assert need_sentences(NEED) == (
        "“cat: green” fails on 50 % of 200 rows, the rest of its class on 10 %.",
        "It has 40 of the 1,040 training rows of its class.",
        "210 more would give it the share that it has in evaluation.",
        "The pool has 100 labelled rows that fit, and 20 without a label.",
        "Estimate, not measured: about 50 more rows for 20 points and about 960 more rows for 40 points, if more rows do for it what "
        "they do across 6 other kinds of its class, which fail less with the power 0.50 of their number of training rows.",
    )


def test_need_sentences__nothing_to_count_or_estimate__says_why():
    bare = NEED.model_copy(
        update={
            "n_training": None,
            "n_to_match": None,
            "n_pool": 0,
            "n_pool_labelled": 0,
            "estimates": (),
            "why_no_estimate": "there are no training rows to count",
        }
    )
    assert need_sentences(bare)[1:] == (
        "The pool has 0 labelled rows that fit.",
        "How many rows a given gain takes cannot be estimated: there are no training rows to count.",
    )
