import pytest
import yaml

from weakspot.core.run import Decision, DecisionKind
from weakspot.report.document import (
    DataFacts,
    build_document,
    front_matter,
    render_html,
    render_json,
    render_markdown,
    render_model_card,
)

DATA = DataFacts(
    name="Fruit & more", n_by_split={"train": 300, "validation": 148, "test": 92}, n_classes=2, class_names=("apple", "pear"),
    n_unlabelled=4, n_quarantined=3, evaluated_splits=("validation",),
)  # fmt: skip


def _decided(record, kind, slice_id, reason=""):
    made = Decision(
        slice_id=slice_id, kind=kind, by="Ada <b>", time="2026-02-03T10:00:00+00:00", reason=reason
    )
    return record.model_copy(update={"decisions": (*record.decisions, made)})


@pytest.fixture
def document(full_record):
    return build_document(full_record, data=DATA)


def test_model_card__figures_are_those_of_the_record(document, record):
    card = document.card
    assert (card.accuracy.count, card.accuracy.total) == (112, 148)
    assert [(one.class_name, one.right.count) for one in card.per_class] == [
        ("apple", 68),
        ("pear", 44),
    ]
    assert card.worst.evidence.gap == max(entry.gap for entry in record.evidence)
    assert card.known_failures == (document.findings[0].sentence,)


def test_model_card__says_what_was_not_tested(document):
    said = " ".join(document.card.caveats)
    assert "3 samples set aside as broken" in said
    assert "4 samples without a label" in said
    assert "defined by what the classifier said" in said
    assert "Labels look wrong in “apple: green”" in said
    assert "“melon”" in said


def test_front_matter__is_yaml_that_hubs_read(document):
    content = yaml.safe_load(front_matter(document))
    (model,) = content["model-index"]
    (result,) = model["results"]
    assert model["name"] == "onnx:1234"
    assert result["task"]["type"] == "image-classification"
    assert result["dataset"] == {
        "type": "fruit-more",
        "name": "Fruit & more",
        "split": "validation",
    }
    assert result["metrics"][0] == {
        "type": "accuracy",
        "name": "Accuracy",
        "value": pytest.approx(112 / 148, abs=1e-6),
    }
    assert result["metrics"][1]["value"] == pytest.approx(6 / 22, abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "- x: [y",
        "a\nb: c",
        "tab\there",
        'quote " and \\',
        "nul \x00 del \x7f line \u2028",
        "\ud800",
        "# no",
        "",
    ],
)
def test_front_matter__any_name__stays_yaml(record, name):
    named = record.model_copy(update={"inputs": {"classifier": name}})
    text = front_matter(build_document(named, data=DATA))
    assert isinstance(yaml.safe_load(text)["model-index"][0]["name"], str)
    text.encode()


def test_render_model_card__front_matter_first(document):
    text = render_model_card(document)
    _, matter, body = text.split("---\n", 2)
    assert yaml.safe_load(matter)
    assert "# Model card: onnx:1234" in body
    assert "| apple | 66 % | 103 |" in body


def test_documents__nothing_confirmed__card_says_so(record):
    empty = record.model_copy(
        update={"evidence": (), "slices": (), "repairs": (), "classifier": None, "notes": ()}
    )
    document = build_document(empty)
    assert document.card.worst is None
    text = render_model_card(document)
    assert "No systematic failure was confirmed." in text
    assert "Nothing was repaired." in text
    assert yaml.safe_load(front_matter(document))["model-index"][0]["results"][0]["metrics"] == []
    assert "Nothing was set aside" in render_html(document)


def test_report__accepted_slice__says_by_whom(record):
    green = record.slices[1]
    document = build_document(_decided(record, DecisionKind.ACCEPTED, green.slice_id))
    assert document.findings[0].people == "Accepted by Ada <b>."
    assert "Accepted by Ada &lt;b&gt;." in render_html(document)
    assert "Accepted by Ada" in render_markdown(document)


def test_report__dismissed_slice__is_no_finding_and_listed_with_reason(record):
    green = record.slices[1]
    dismissed = _decided(record, DecisionKind.DISMISSED, green.slice_id, "labels | are wrong")
    document = build_document(dismissed)
    assert document.findings == ()
    (one,) = document.dismissed
    assert one.slice_ == green
    assert (one.decision.by, one.decision.reason) == ("Ada <b>", "labels | are wrong")
    for text in (render_html(document), render_markdown(document), render_json(document)):
        assert "are wrong" in text
    assert "People dismissed 1 slice: “apple: green”." in document.card.caveats
    restored = build_document(_decided(dismissed, DecisionKind.RESTORED, green.slice_id))
    assert restored.dismissed == ()
    assert len(restored.findings) == 1
