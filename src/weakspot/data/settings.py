"""The settings `[data]` and `[boxes]`: where samples come from, and how they become a data set."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from weakspot.core.dataset import Split
from weakspot.data.source import parse_split


class Section(BaseModel):
    """Base of all sections of settings: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DataSettings(Section):
    """Where the samples come from."""

    source: str = Field(
        default="",
        description="Folder, manifest, Hugging Face folder or name, or tar pattern; relative to this file.",
    )
    kind: str = Field(
        default="auto",
        description="How to read it: auto, image-folder, manifest, hf-dataset, webdataset, predictions, coco, yolo.",
    )
    columns: dict[str, str] = Field(
        default_factory=dict, description="Manifest columns by meaning, e.g. {label = 'species'}."
    )
    task: Literal["auto", "single-label", "multi-label"] = Field(
        default="auto", description="How many labels a sample can have."
    )
    class_names: tuple[str, ...] = Field(
        default=(), description="The classes; empty: those found in the labels."
    )
    group: str = Field(
        default="auto",
        description="What belongs together: a column, 'folder:1', 'file-name', a pattern with one capture, none; auto: see the guide.",
    )
    default_split: str = Field(
        default="",
        description="Split of samples that name none; empty: they are split by the fractions below.",
    )
    unlabelled_is_negative: bool = Field(
        default=False,
        description="Multi-label only: a sample without labels has none of them, instead of unknown ones.",
    )
    validation_fraction: float = Field(
        default=0.25,
        ge=0.0,
        le=1.0,
        description="Share of samples without a split put in validation.",
    )
    test_fraction: float = Field(
        default=0.25, ge=0.0, le=1.0, description="Share of samples without a split put in test."
    )
    cache_megabytes: int = Field(
        default=2048,
        ge=0,
        description="Most that is kept of remote images on this machine; 0 keeps nothing.",
    )
    cache_folder: str = Field(
        default="",
        description="Where they are kept; empty: weakspot/images in the user's cache folder.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.validation_fraction + self.test_fraction > 1:
            raise ValueError("validation_fraction and test_fraction must not exceed 1 together")
        repeated = sorted({name for name in self.class_names if self.class_names.count(name) > 1})
        if repeated:
            raise ValueError(f"class_names repeats {repeated}")
        return self

    @property
    def split(self) -> Split | None:
        """Split of samples that name none, None if they are dealt out."""
        return parse_split(self.default_split)


class BoxSettings(Section):
    """How boxes of detection data (COCO, YOLO) become samples."""

    images: str = Field(
        default="",
        description="Folder that names of images start at; empty: one beside the annotations.",
    )
    margin: float = Field(
        default=0.1,
        ge=0.0,
        le=2.0,
        description="Surroundings shown on every side, as a share of the box.",
    )
    least_side: float = Field(
        default=4.0, ge=1.0, description="Boxes with a shorter side, in pixels, are set aside."
    )
    detections: str = Field(
        default="",
        description="COCO results file of a detector; what it said of a box is its prediction.",
    )
    overlap: float = Field(
        default=0.5,
        gt=0.0,
        le=1.0,
        description="Intersection over union from which on they are the same box.",
    )
