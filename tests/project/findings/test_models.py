"""Models and data sets in memory: PyTorch, Hugging Face, and any function."""

import numpy as np
import pytest
from PIL import Image

import weakspot
from weakspot.core.errors import DataError, ModelError
from weakspot.project.given_models import answers_of, samples_of

COLOURS = {"red": (0.8, 0.2, 0.2), "green": (0.4, 0.7, 0.3), "blue": (0.2, 0.3, 0.8)}


@pytest.fixture
def pictures(fruit):
    """Small images whose first column of pixels tells the label and whose others tell the colour."""
    images = np.empty((len(fruit.labels), 6, 6, 3), dtype=np.float32)
    for place, colour in enumerate(fruit.columns["colour"]):
        images[place] = COLOURS[colour]
    images[:, :, 0] = fruit.predictions[:, None, None]
    images[:, 0, 1, 0] = np.linspace(0, 1, len(images))  # no two are the same file
    images[:, 0, 1, 1] = np.arange(len(images)) % 250 / 255
    return images


def reader(torch):
    """A network that reads its answer off the first column."""

    class Reader(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(4.0))

        def forward(self, images):
            told = images[:, :, :, 0].mean(dim=(1, 2))
            return self.scale * torch.stack([0.5 - told, told - 0.5], dim=1)

    return Reader()


def test_find__torch_data_set_and_module__in_three_lines(fruit, pictures):
    import torch

    tensors = torch.from_numpy(pictures).permute(0, 3, 1, 2)
    dataset = torch.utils.data.TensorDataset(tensors, torch.from_numpy(fruit.labels))
    module = reader(torch).train()

    findings = weakspot.find(
        dataset, model=module, class_names=fruit.names, embeddings=fruit.embeddings
    )

    assert module.training
    assert findings[0].class_name == "apple"
    assert fruit.is_hard[findings[0].members].mean() > 0.9
    with Image.open(findings[0].images[0]) as image:
        assert image.size == (6, 6)
    assert findings.report().is_file()


def test_samples_of__loader_that_shuffles__refused(fruit, pictures):
    import torch

    dataset = torch.utils.data.TensorDataset(
        torch.from_numpy(pictures).permute(0, 3, 1, 2), torch.from_numpy(fruit.labels)
    )
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True)
    with pytest.raises(DataError, match="shuffles"):
        samples_of(loader, reader(torch), {})


def test_samples_of__files_of_the_data_set__are_the_images(fruit, pictures, tmp_path):
    import torch

    class Folder(torch.utils.data.Dataset):
        classes = ("apple", "pear")
        samples = [(str(tmp_path / f"{place}.png"), 0) for place in range(4)]  # noqa: RUF012

        def __len__(self):
            return 4

        def __getitem__(self, place):
            return torch.from_numpy(pictures[place]).permute(2, 0, 1), int(fruit.labels[place])

    found = samples_of(Folder(), reader(torch), {})

    assert found["images"] == [path for path, _ in Folder.samples]
    assert found["labels"] == fruit.labels[:4].tolist()
    assert found["class_names"] == ["apple", "pear"]
    assert found["probabilities"].argmax(axis=1).tolist() == fruit.predictions[:4].tolist()


def test_find__hugging_face_data_set_and_pipeline__in_three_lines(fruit, pictures):
    import datasets

    images = [Image.fromarray((255 * image).astype(np.uint8)) for image in pictures]
    dataset = datasets.Dataset.from_dict(
        {"image": images, "label": fruit.labels.tolist(), "colour": list(fruit.columns["colour"])},
        features=datasets.Features(
            {
                "image": datasets.Image(),
                "label": datasets.ClassLabel(names=fruit.names),
                "colour": datasets.Value("string"),
            }
        ),
    )

    def pipe(batch):
        """Answer as the pipelines of transformers do."""
        said = [np.asarray(image)[0, 0, 0] > 127 for image in batch]
        return [
            [
                {"label": "pear", "score": 0.9 if one else 0.2},
                {"label": "apple", "score": 0.1 if one else 0.8},
            ]
            for one in said
        ]

    findings = weakspot.find(dataset, model=pipe, embeddings=fruit.embeddings)

    assert findings[0].title == "apple: green"
    assert sorted(findings[0].members) == np.flatnonzero(fruit.is_hard).tolist()


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (lambda batch: ["a" for _ in batch], {"predictions": ["a", "a"]}),
        (lambda batch: [{"label": "b", "score": 0.7} for _ in batch], {"predictions": ["b", "b"]}),
    ],
)
def test_answers_of__functions(answers, told):
    given = {"images": ["one.png", "two.png"]}
    assert answers_of(answers, given) == {**given, **told}


@pytest.mark.parametrize(
    ("model", "given", "error", "said"),
    [
        (lambda batch: batch[:1], {"images": ["a", "b"]}, ModelError, "1 answers for 2"),
        (lambda batch: batch, {}, DataError, "no images"),
        (7, {"images": ["a"]}, ModelError, "not clear how to ask"),
    ],
)
def test_answers_of__bad_models__say_so(model, given, error, said):
    with pytest.raises(error, match=said):
        answers_of(model, given)


@pytest.mark.parametrize("told", [None, 3, [0]])
def test_answers_of__a_function_that_does_not_answer_each_image__says_so(told):
    with pytest.raises(ModelError, match="answers for 2 images"):
        answers_of(lambda images: told, {"images": [1, 2]})


def test_answers_of__images_that_are_drawn_once__are_kept():
    drawn = (place for place in (4, 5))
    found = answers_of(lambda images: images, {"images": drawn})
    assert found["predictions"] == [4, 5]
    assert list(found["images"]) == [4, 5]


def test_find__streamed_or_several_data_sets_of_hugging_face__says_so():
    import datasets

    one = datasets.Dataset.from_dict({"label": ["a", "b"]})
    with pytest.raises(DataError, match="streamed"):
        weakspot.find(one.to_iterable_dataset(), predictions=["a", "b"])
    with pytest.raises(DataError, match=r"several data sets.*'validation'"):
        weakspot.find(datasets.DatasetDict({"validation": one}), predictions=["a", "b"])
