import numpy as np
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import TakesHead
from weakspot.models.sklearn.classifier import SklearnClassifier

RANDOM = np.random.default_rng(0)
EMBEDDINGS = RANDOM.standard_normal((90, 6)).astype(np.float32)
LABELS = np.array(["owl", "cat", "dog"])[
    np.argmax(EMBEDDINGS[:, :3] + 0.3 * RANDOM.standard_normal((90, 3)), axis=1)
]
MANY = np.stack([EMBEDDINGS[:, 0] > 0, EMBEDDINGS[:, 1] > 0.5], axis=1).astype(int)


class Custom(LogisticRegression):
    """A type that a .skops file may not hold without being named."""


def _head(n_classes, n_features=6, task=Task.SINGLE_LABEL):
    chance = np.random.default_rng(5)
    weights = chance.standard_normal((n_classes, n_features)).astype(np.float32)
    return Head(
        weights=weights, bias=chance.standard_normal(n_classes).astype(np.float32), task=task
    )


def _softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_write_repaired__pipeline_from_a_file(tmp_path):
    model = make_pipeline(StandardScaler(), PCA(4), LogisticRegression()).fit(EMBEDDINGS, LABELS)
    skops.io.dump(model, tmp_path / "m.skops")
    content = (tmp_path / "m.skops").read_bytes()
    classifier, head = SklearnClassifier(path=tmp_path / "m.skops"), _head(3, 4)
    assert isinstance(classifier, TakesHead)
    files = classifier.write_repaired(head, tmp_path / "out")
    assert files == (tmp_path / "out" / "m_repaired.skops",)
    assert (tmp_path / "m.skops").read_bytes() == content
    found = skops.io.load(files[0])
    seen = model[:-1].transform(EMBEDDINGS)
    np.testing.assert_array_equal(found[:-1].transform(EMBEDDINGS), seen)
    np.testing.assert_allclose(
        found.predict_proba(EMBEDDINGS), _softmax(seen @ head.weights.T + head.bias), atol=1e-6
    )
    assert found.classes_.tolist() == ["cat", "dog", "owl"]


def test_write_repaired__rows_go_to_the_models_own_order(tmp_path):
    model = LogisticRegression().fit(EMBEDDINGS, LABELS)
    kept = model.coef_.copy()
    head = _head(3)
    classifier = SklearnClassifier(model=model, class_names=["owl", "cat", "dog"])
    found = skops.io.load(classifier.write_repaired(head, tmp_path)[0])
    np.testing.assert_array_equal(found.coef_, head.weights[[1, 2, 0]])
    np.testing.assert_array_equal(found.intercept_, head.bias[[1, 2, 0]])
    np.testing.assert_array_equal(model.coef_, kept)


def test_write_repaired__two_classes_have_one_row(tmp_path):
    labels = np.where(LABELS == "cat", "cat", "other")
    for number, estimator in enumerate(
        (LogisticRegression(), LinearSVC(), LinearDiscriminantAnalysis())
    ):
        model = estimator.fit(EMBEDDINGS, labels)
        head = _head(2)
        found = skops.io.load(
            SklearnClassifier(model=model).write_repaired(head, tmp_path / str(number))[0]
        )
        np.testing.assert_allclose(found.coef_, head.weights[1:] - head.weights[:1], atol=1e-6)
        assert found.coef_.shape == model.coef_.shape
        expected = _softmax(EMBEDDINGS @ head.weights.T + head.bias)
        np.testing.assert_array_equal(
            found.predict(EMBEDDINGS), np.array(["cat", "other"])[expected.argmax(axis=1)]
        )
        if hasattr(found, "predict_proba"):
            np.testing.assert_allclose(found.predict_proba(EMBEDDINGS), expected, atol=1e-6)


def test_write_repaired__several_labels(tmp_path):
    head = _head(2, task=Task.MULTI_LABEL)
    expected = 1 / (1 + np.exp(-(EMBEDDINGS @ head.weights.T + head.bias)))
    for number, model in enumerate(
        (MultiOutputClassifier(LogisticRegression()), OneVsRestClassifier(LogisticRegression()))
    ):
        classifier = SklearnClassifier(
            model=model.fit(EMBEDDINGS, MANY), task="multi-label", class_names=["bright", "large"]
        )
        written = classifier.write_repaired(head, tmp_path / str(number))[0]
        again = SklearnClassifier(path=written, task="multi-label", class_names=["bright", "large"])
        np.testing.assert_allclose(again.classify(EMBEDDINGS).probabilities, expected, atol=1e-6)


def test_write_repaired__wrappers_are_refused_with_the_reason(tmp_path):
    labels = np.where(LABELS == "cat", "cat", "other")
    for model, name, n_classes in (
        (
            OneVsRestClassifier(LogisticRegression()).fit(EMBEDDINGS, LABELS),
            "OneVsRestClassifier",
            3,
        ),
        (
            CalibratedClassifierCV(LogisticRegression(), cv=2).fit(EMBEDDINGS, labels),
            "CalibratedClassifierCV",
            2,
        ),
    ):
        with pytest.raises(
            ModelError, match=rf"not a linear layer.*\({name}\).*repaired_head\.safetensors"
        ):
            SklearnClassifier(model=model).write_repaired(_head(n_classes), tmp_path / "out")
    one_against_rest = SGDClassifier(loss="log_loss", random_state=0).fit(EMBEDDINGS, LABELS)
    with pytest.raises(ModelError, match=r"last layer does not give its probabilities"):
        SklearnClassifier(model=one_against_rest).write_repaired(_head(3), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_write_repaired__types_of_ones_own(tmp_path):
    model = Custom().fit(EMBEDDINGS, LABELS)
    written = SklearnClassifier(model=model).write_repaired(_head(3), tmp_path / "out")[0]
    assert written.name == "Custom_repaired.skops"
    name = f"{Custom.__module__}.Custom"
    again = SklearnClassifier(path=written, trusted_types=[name])
    np.testing.assert_allclose(again.head.weights, _head(3).weights, atol=1e-6)


def test_write_repaired__problems(tmp_path):
    classifier = SklearnClassifier(model=LogisticRegression().fit(EMBEDDINGS, LABELS))
    with pytest.raises(ModelError, match="3 classes and 6 features"):
        classifier.write_repaired(_head(3, 5), tmp_path / "out")
    with pytest.raises(ModelError, match="single-label with 3 classes"):
        classifier.write_repaired(_head(3, task=Task.MULTI_LABEL), tmp_path / "out")
    classifier.write_repaired(_head(3), tmp_path / "out")
    with pytest.raises(ModelError, match="LogisticRegression_repaired"):
        classifier.write_repaired(_head(3), tmp_path / "out")
