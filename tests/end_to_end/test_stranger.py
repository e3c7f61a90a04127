"""A stranger with what data scientists have: three to five lines lead to a table of findings with words, and to a report."""

from types import SimpleNamespace

import numpy as np
import pytest

import weakspot
from weakspot.core.dataset import Split
from weakspot.testing.planted import plant, rare

WORDS = weakspot.Settings(
    embedder={"name": "planted"}, discover={"methods": ["clusters", "attributes"]}
)
"""The embedder of the planted drawings; photographs have the embedded default."""
SIDE = 32


@pytest.fixture(scope="module")
def drawn():
    """Some 400 drawings, and somebody's answers: two thirds of the green discs are taken for stars, 5 % of the rest is wrong."""
    world = plant(rare(0.02), 900, seed=0)
    rows = np.concatenate([world.samples(one).rows for one in (Split.VALIDATION, Split.TEST)])
    names = list(world.dataset.class_names)
    labels, draws = world.dataset.labels[rows], np.random.default_rng(0)
    colour = np.array(world.dataset.metadata("colour").to_pylist())[rows]
    is_hard = (labels == names.index("disc")) & (colour == "green")
    is_wrong = draws.random(len(rows)) < np.where(is_hard, 0.67, 0.05)
    wrong = np.where(labels == names.index("star"), names.index("disc"), names.index("star"))
    images = [world.image(int(row), side=SIDE) for row in rows]
    answers = np.where(is_wrong, wrong, labels)
    said = {
        np.asarray(image).tobytes(): int(one) for image, one in zip(images, answers, strict=True)
    }
    return SimpleNamespace(
        images=images,
        labels=labels,
        answers=answers,
        names=names,
        said=said,
        is_hard=is_hard,
        colour=colour,
    )


def leads_to_words_and_a_report(findings, drawn):
    """Check that the first row says in words what is wrong, and that there is a report that says it too."""
    table = findings.table
    assert "green" in f"{table['title'][0]} {table['words'][0]}"
    assert table["q_value"][0] <= 0.05
    assert drawn.is_hard[findings[0].members].mean() > 0.8
    assert "green" in findings.report().read_text(encoding="utf-8")
    return True


def test_stranger__arrays_only(drawn):
    pixels = np.stack([np.asarray(image) for image in drawn.images])
    names = np.array(drawn.names)

    findings = weakspot.find(
        images=pixels, labels=names[drawn.labels], predictions=names[drawn.answers], settings=WORDS
    )

    assert leads_to_words_and_a_report(findings, drawn)


def test_stranger__data_frame_only(drawn):
    import pandas as pd

    names = np.array(drawn.names)
    frame = pd.DataFrame(
        {"label": names[drawn.labels], "prediction": names[drawn.answers], "colour": drawn.colour}
    )

    findings = weakspot.find(frame)

    assert leads_to_words_and_a_report(findings, drawn)


def test_stranger__pytorch_data_set_and_module(drawn):
    import torch

    class Network(torch.nn.Module):
        def forward(self, batch):
            pixels = (batch * 255).round().byte().permute(0, 2, 3, 1).numpy()
            told = [drawn.said[np.ascontiguousarray(image).tobytes()] for image in pixels]
            return 5 * torch.nn.functional.one_hot(torch.tensor(told), len(drawn.names)).float()

    tensors = torch.stack(
        [torch.from_numpy(np.array(one)).permute(2, 0, 1) / 255 for one in drawn.images]
    )
    dataset = torch.utils.data.TensorDataset(tensors, torch.from_numpy(drawn.labels))

    findings = weakspot.find(dataset, model=Network(), class_names=drawn.names, settings=WORDS)

    assert leads_to_words_and_a_report(findings, drawn)


def test_stranger__hugging_face_data_set_and_pipeline(drawn):
    import datasets

    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=drawn.names)}
    )
    columns = {"image": drawn.images, "label": drawn.labels.tolist()}
    dataset = datasets.Dataset.from_dict(columns, features=features)

    def pipeline(images):
        told = [drawn.said[np.asarray(image).tobytes()] for image in images]
        return [[{"label": drawn.names[one], "score": 0.9}] for one in told]

    findings = weakspot.find(dataset, model=pipeline, settings=WORDS)

    assert leads_to_words_and_a_report(findings, drawn)


def test_stranger__scikit_learn_estimator(drawn):
    from sklearn.linear_model import LogisticRegression

    colours = np.array([np.asarray(image).mean(axis=(0, 1)) for image in drawn.images])
    features = np.hstack([np.eye(len(drawn.names))[drawn.answers], colours / 255])
    estimator = LogisticRegression(max_iter=1000).fit(features, drawn.answers)

    findings = weakspot.find(
        embeddings=features, labels=drawn.labels, model=estimator, class_names=drawn.names,
        metadata={"colour": drawn.colour}, settings=weakspot.Settings(discover={"methods": ["attributes"]}),
    )  # fmt: skip

    assert leads_to_words_and_a_report(findings, drawn)


def test_stranger__timm_model(drawn):
    import torch

    from weakspot.models.torch.runtime import declare_torchvision_operators

    declare_torchvision_operators()  # of a torchvision that was built for another torch
    import timm

    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=len(drawn.names)).eval()
    tensors = torch.stack(
        [torch.from_numpy(np.array(one)).permute(2, 0, 1) / 255 for one in drawn.images]
    )
    dataset = torch.utils.data.TensorDataset(tensors, torch.from_numpy(drawn.labels))

    findings = weakspot.find(dataset, model=model, class_names=drawn.names, settings=WORDS)

    # Nobody trained it, so there is no slice to expect; what is known is said.
    assert f"right on {len(drawn.images)} validation images" in str(findings)
    assert findings.report().is_file()
