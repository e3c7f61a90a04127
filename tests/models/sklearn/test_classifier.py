import pickle
import subprocess
import sys

import numpy as np
import pytest
import skops.io
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import Classifier
from weakspot.models.sklearn.classifier import SklearnClassifier

RANDOM = np.random.default_rng(0)
EMBEDDINGS = RANDOM.standard_normal((90, 6)).astype(np.float32)
LABELS = np.array(["owl", "cat", "dog"])[
    np.argmax(EMBEDDINGS[:, :3] + 0.3 * RANDOM.standard_normal((90, 3)), axis=1)
]
MANY = np.stack([EMBEDDINGS[:, 0] > 0, EMBEDDINGS[:, 1] > 0.5], axis=1).astype(int)


class Custom(LogisticRegression):
    """A type that a .skops file may not hold without being named."""


def _check_head(classifier, embeddings=EMBEDDINGS):
    output = classifier.classify(embeddings)
    np.testing.assert_allclose(
        classifier.head.probabilities(output.features), output.probabilities, atol=1e-5
    )
    return output


def test_classify__pipeline_with_logistic_regression():
    model = make_pipeline(StandardScaler(), PCA(4), LogisticRegression()).fit(EMBEDDINGS, LABELS)
    classifier = SklearnClassifier(model=model)
    assert isinstance(classifier, Classifier)
    assert classifier.reads == "embeddings"
    assert classifier.space == "clip"
    assert classifier.class_names == ("cat", "dog", "owl")
    output = _check_head(classifier)
    np.testing.assert_allclose(output.probabilities, model.predict_proba(EMBEDDINGS), atol=1e-6)
    np.testing.assert_allclose(output.features, model[:-1].transform(EMBEDDINGS), atol=1e-5)


def test_classify__list_of_embeddings_as_ingest_gives_them():
    classifier = SklearnClassifier(model=LogisticRegression().fit(EMBEDDINGS, LABELS))
    np.testing.assert_array_equal(
        classifier.classify(list(EMBEDDINGS)).probabilities,
        classifier.classify(EMBEDDINGS).probabilities,
    )


def test_classify__columns_follow_class_names():
    model = LogisticRegression().fit(EMBEDDINGS, LABELS)
    classifier = SklearnClassifier(model=model, class_names=["owl", "cat", "dog"])
    output = _check_head(classifier)
    np.testing.assert_allclose(
        output.probabilities, model.predict_proba(EMBEDDINGS)[:, [2, 0, 1]], atol=1e-6
    )
    wider = SklearnClassifier(model=model, class_names=["owl", "cat", "yak", "dog"])
    assert wider.classify(EMBEDDINGS).probabilities[:, 2].tolist() == [0.0] * 90
    assert wider.head is None
    with pytest.raises(ModelError, match="class_names lacks"):
        SklearnClassifier(model=model, class_names=["owl", "cat", "yak"]).classify(EMBEDDINGS)


def test_classify__numbered_classes():
    numbers = np.array([{"cat": 0, "dog": 1, "owl": 3}[name] for name in LABELS])
    model = LogisticRegression().fit(EMBEDDINGS, numbers)
    assert SklearnClassifier(model=model).class_names is None
    found = (
        SklearnClassifier(model=model, class_names=["cat", "dog", "elk", "owl"])
        .classify(EMBEDDINGS)
        .probabilities
    )
    np.testing.assert_allclose(found[:, [0, 1, 3]], model.predict_proba(EMBEDDINGS), atol=1e-6)


def test_classify__two_classes():
    model = LogisticRegression().fit(EMBEDDINGS, np.where(LABELS == "cat", "cat", "other"))
    output = _check_head(SklearnClassifier(model=model))
    np.testing.assert_allclose(output.probabilities, model.predict_proba(EMBEDDINGS), atol=1e-6)


def test_classify__support_vectors_without_probabilities():
    for labels in (LABELS, np.where(LABELS == "cat", "cat", "other")):
        model = make_pipeline(StandardScaler(), LinearSVC()).fit(EMBEDDINGS, labels)
        output = _check_head(SklearnClassifier(model=model))
        names = np.array(SklearnClassifier(model=model).class_names)
        np.testing.assert_array_equal(
            names[output.probabilities.argmax(axis=1)], model.predict(EMBEDDINGS)
        )


def test_head__none_when_it_is_not_linear():
    forest = SklearnClassifier(
        model=RandomForestClassifier(n_estimators=3, random_state=0).fit(EMBEDDINGS, LABELS)
    )
    assert forest.head is None
    assert forest.classify(EMBEDDINGS).features is None
    assert "not a linear layer" in forest.features_note
    one_against_rest = SklearnClassifier(
        model=OneVsRestClassifier(LogisticRegression()).fit(EMBEDDINGS, LABELS)
    )
    assert one_against_rest.head is None


def test_classify__multi_label_in_every_shape():
    for model in (
        MultiOutputClassifier(LogisticRegression()).fit(EMBEDDINGS, MANY),
        OneVsRestClassifier(LogisticRegression()).fit(EMBEDDINGS, MANY),
        RandomForestClassifier(n_estimators=3, random_state=0).fit(EMBEDDINGS, MANY),
        KNeighborsClassifier(3).fit(EMBEDDINGS, MANY),
    ):
        classifier = SklearnClassifier(
            model=model, task="multi-label", class_names=["bright", "large"]
        )
        assert classifier.task is Task.MULTI_LABEL
        found = classifier.classify(EMBEDDINGS).probabilities
        given = model.predict_proba(EMBEDDINGS)
        expected = (
            np.stack([table[:, 1] for table in given], axis=1) if isinstance(given, list) else given
        )
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_head__multi_label():
    for model in (
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
    ):
        classifier = SklearnClassifier(
            model=make_pipeline(StandardScaler(), model).fit(EMBEDDINGS, MANY), task="multi-label"
        )
        _check_head(classifier)
        assert classifier.head.weights.shape == (2, 6)


def test_classify__label_that_was_always_the_same():
    for constant in (0, 1):
        labels = np.stack([MANY[:, 0], np.full(90, constant)], axis=1)
        model = RandomForestClassifier(n_estimators=3, random_state=0).fit(EMBEDDINGS, labels)
        found = (
            SklearnClassifier(model=model, task="multi-label").classify(EMBEDDINGS).probabilities
        )
        assert found[:, 1].tolist() == [float(constant)] * 90


def test_classify__wrong_length_and_no_embeddings():
    classifier = SklearnClassifier(
        model=LogisticRegression().fit(EMBEDDINGS, LABELS), space="features"
    )
    with pytest.raises(ModelError, match=r"embeddings of length 6.*now 'features'"):
        classifier.classify(EMBEDDINGS[:, :5])
    assert classifier.classify([]).probabilities.shape == (0, 3)


def test_prepare__images_are_refused():
    with pytest.raises(ModelError, match="reads embeddings of the space 'clip', not images"):
        SklearnClassifier(model=LogisticRegression().fit(EMBEDDINGS, LABELS)).prepare(
            Image.new("RGB", (3, 2))
        )


def test_skops__round_trip(tmp_path):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(EMBEDDINGS, LABELS)
    skops.io.dump(model, tmp_path / "m.skops")
    classifier = SklearnClassifier(path=tmp_path / "m.skops")
    np.testing.assert_allclose(
        _check_head(classifier).probabilities, model.predict_proba(EMBEDDINGS), atol=1e-6
    )
    assert classifier.classifier_id.startswith("sklearn:m.skops@")


def test_skops__unknown_types_are_named(tmp_path):
    skops.io.dump(Custom().fit(EMBEDDINGS, LABELS), tmp_path / "m.skops")
    name = f"{Custom.__module__}.Custom"
    with pytest.raises(
        ModelError, match=rf"not known to be harmless: {name}\..*trusted_types = \['{name}'\]"
    ):
        _ = SklearnClassifier(path=tmp_path / "m.skops").head


def test_load__pickles_are_refused(tmp_path):
    for name in ("m.pkl", "m.joblib", "m.skops"):
        (tmp_path / name).write_bytes(pickle.dumps(LogisticRegression()))
        with pytest.raises(ModelError, match=r"pickle.*skops\.io\.dump"):
            _ = SklearnClassifier(path=tmp_path / name).head
    with pytest.raises(ModelError, match="no such model file"):
        _ = SklearnClassifier(path=tmp_path / "none.skops").head


def test_settings__problems():
    with pytest.raises(ConfigError, match="either a fitted model"):
        SklearnClassifier()
    with pytest.raises(ModelError, match="no fitted scikit-learn classifier"):
        _ = SklearnClassifier(model=LogisticRegression()).head
    with pytest.raises(ModelError, match="no fitted scikit-learn classifier"):
        _ = SklearnClassifier(model=StandardScaler().fit(EMBEDDINGS)).head


ID_SCRIPT = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from weakspot.models.sklearn.classifier import SklearnClassifier
embeddings = np.random.default_rng(5).standard_normal((20, 3))
print(SklearnClassifier(model=LogisticRegression().fit(embeddings, embeddings[:, 0] > 0)).classifier_id)
"""


def test_classifier_id__same_in_every_process():
    embeddings = np.random.default_rng(5).standard_normal((20, 3))
    here, other = (
        SklearnClassifier(
            model=LogisticRegression(C=strength).fit(embeddings, embeddings[:, 0] > 0)
        ).classifier_id
        for strength in (1.0, 2.0)
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", ID_SCRIPT], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert here == elsewhere != other
    assert here.startswith("sklearn:LogisticRegression@")
