import json

from weakspot.core.repairs import GroupKind, LabellingRequest, SliceNeed
from weakspot.report.document import build_document, render_html, render_json
from weakspot.report.repairs import need_sentences, repair_section


def test_repair_section__repair_comes_before_its_baselines(record):
    section = repair_section(record.repairs[0])
    assert section.title == "Repair: slice-balanced"
    assert [arm.arm for arm in section.arms] == ["slice-balanced", "random", "confidence"]
    assert [row.group for row in section.rows] == [
        "overall",
        "apple: green",
        "apple: the rest",
        "apple",
        "pear",
    ]
    assert section.n_unchanged == 1
    assert [change.right_after for change in section.rows[1].after] == [10, 6, 9]
    assert section.got_worse == ("pear",)


def test_repair_section__sentences_in_order(compared_record):
    section = repair_section(compared_record.repairs[0])
    starts = [
        "Accuracy on “apple: green” rose",
        "Overall accuracy, on 92 samples, rose from 84 % to 90 %",
        "The lowest accuracy of a group rose",
        "On test split: 6 of 15",
        "On seed (validation, discovery half): 6 of 10",
        "On held-out (validation, confirmation half): 6 of 10",
        "Lower, which may be chance: “pear”",
    ]
    assert [
        sentence.startswith(start)
        for sentence, start in zip(section.sentences, starts, strict=True)
    ] == [True] * 7


def test_repair_section__an_arm_that_lacks_a_group_leaves_a_hole(record):
    (result,) = record.repairs
    random, repaired, confidence = result.arms
    lacking = random.model_copy(update={"changes": random.changes[:1]})
    section = repair_section(result.model_copy(update={"arms": (lacking, repaired, confidence)}))
    row = next(row for row in section.rows if row.kind is GroupKind.SLICE)
    assert [None if change is None else change.right_after for change in row.after] == [10, None, 9]


def test_repair_section__accounting_of_every_arm(compared_record):
    rows = repair_section(compared_record.repairs[0]).accounting
    assert [row.data for row in rows[::2]] == [
        "test split",
        "seed (validation, discovery half)",
        "held-out (validation, confirmation half)",
    ]
    resolved, clean = rows[2], rows[3]
    assert [None if share is None else (share.count, share.total) for share in resolved.shares] == [
        (6, 10),
        (1, 10),
        None,
    ]
    assert [None if share is None else (share.count, share.total) for share in clean.shares] == [
        (38, 40),
        (39, 40),
        None,
    ]
    assert clean.is_clean


def test_repair_section__what_waits_for_labels(compared_record):
    section = repair_section(compared_record.repairs[2])
    assert section.sentences == (
        "Waiting for 50 labels: labels.csv (images alone: labels.txt); 10 of 60 have come back.",
    )
    assert (section.arms, section.rows, section.got_worse, section.labelling) == ((), (), (), "")


def test_repair_section__a_slice_without_measured_members(record):
    (result,) = record.repairs
    arms = []
    for arm in result.arms:
        none = arm.changes[1].model_copy(
            update={"n_samples": 0, "right_before": 0, "right_after": 0, "gained": 0}
        )
        arms.append(arm.model_copy(update={"changes": (arm.changes[0], none)}))
    section = repair_section(result.model_copy(update={"arms": tuple(arms)}))
    assert (
        section.sentences[0]
        == "No measured sample is a member of “apple: green”, so nothing can be said of it."
    )


def test_repair_section__the_kept_head_is_a_file(record):
    result = record.repairs[0].model_copy(update={"head_file": "head.safetensors"})
    assert repair_section(result).files == ("head.safetensors",)


def test_repair_section__nothing_could_be_retrained__needs_in_words_and_no_claim_of_a_repair(
    record,
):
    need = SliceNeed(
        slice_id="a",
        title="apple: green",
        rate_inside=0.5,
        rate_outside=0.1,
        n_inside=10,
        n_outside=20,
        n_evaluation=60,
        why_no_estimate="there are no training rows to count",
    )
    request = LabellingRequest(
        file="to_label.csv", image_list="to_label.txt", n_samples=7, n_labelled=2
    )
    result = record.repairs[0].model_copy(
        update={"arms": (), "needs": (need,), "labelling": request, "aftermath": None}
    )
    section = repair_section(result)
    assert section.title == "Repair without retraining"
    assert section.sentences == (" ".join(need_sentences(need)),)
    assert section.labelling.startswith("5 pool rows that fit have no label")
    assert section.needs == (need,)
    document = build_document(record.model_copy(update={"repairs": (result,)}))
    assert document.card.repairs == (
        "Nothing was retrained: rows to collect and weights for one's own training were listed.",
    )
    assert not any("apple: green” fails on 50 %" in sentence for sentence in document.summary)
    assert json.loads(render_json(document))["repairs"][0]["needs"][0]["n_inside"] == 10


def test_repair_section__a_slice_made_worse_is_the_first_thing_that_is_said(record):
    (result,) = record.repairs
    assert not any("Do not use" in one for one in repair_section(result).sentences)
    fallen = {"right_after": 0, "gained": 0, "lost": 1}
    worse = result.model_copy(
        update={
            "arms": tuple(
                arm.model_copy(
                    update={
                        "changes": tuple(
                            one.model_copy(update=fallen) if one.kind is GroupKind.SLICE else one
                            for one in arm.changes
                        )
                    }
                )
                for arm in result.arms
            )
        }
    )
    section = repair_section(worse)
    assert section.sentences[0].startswith(
        "Do not use this repair: the slice it is for has become worse, “apple: green” (1 to 0 of 15 right"
    )
    assert section.sentences[1].startswith("Accuracy on “apple: green”")
    page = render_html(build_document(record.model_copy(update={"repairs": (worse,)})))
    assert page.index("Do not use this repair") < page.index("Accuracy on “apple: green”")
