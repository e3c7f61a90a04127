from weakspot.run.ledger import Standing

ASKED = Standing(
    n_samples=600,
    n_questions=45,
    n_batches=3,
    n_found=0,
    share=0.0294,
    largest_p=0.00147,
    alpha=0.05,
)


def test_sentence__other_classifiers_and_checks__are_told_beside():
    more = ASKED.model_copy(update={"n_other_classifiers": 1, "n_checks": 2, "n_batches": 1})
    assert more.sentence.startswith("1 batch of questions (45 in all) was asked")
    assert more.sentence.endswith(
        "They were also asked about 1 other classifier; each has an error rate of its own. "
        "2 comparisons of two classifiers on them promise for themselves only."
    )


def test_sentence__one_question_at_a_time__are_just_questions():
    alone = ASKED.model_copy(update={"n_questions": 3})
    assert alone.sentence.startswith("3 questions were asked of these 600 samples; the next may")
    one = ASKED.model_copy(update={"n_questions": 1, "n_batches": 1, "n_samples": 1})
    assert one.sentence.startswith("1 question was asked of these 1 sample; the next may")
