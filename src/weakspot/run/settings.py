"""The settings of a project: typed, closed, read from weakspot.toml; every problem is reported at once."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, ValidationError, model_validator

from weakspot.core.bounds import SliceOrder
from weakspot.core.errors import ConfigError, raise_all
from weakspot.core.failures import FailureCriterion, FailureKind, LabelHierarchy
from weakspot.data.settings import BoxSettings, DataSettings, Section

ProviderName = Literal[
    "auto",
    "cpu",
    "cuda",
    "tensorrt",
    "rocm",
    "migraphx",
    "directml",
    "coreml",
    "openvino",
    "xnnpack",
]
ProviderSetting = Annotated[
    ProviderName,
    Field(
        description="Which execution provider of onnxruntime computes all ONNX models; auto: the best that is installed and starts."
    ),
]


WitnessKind = Literal["text", "objects", "scenes", "properties", "masks"]
WITNESS_KINDS: tuple[WitnessKind, ...] = ("text", "objects", "scenes", "properties", "masks")


class WitnessSettings(Section):
    """Independent witnesses of words: they read text, know objects and places, and measure."""

    on: Literal["asked", "all", "none"] = Field(
        default="asked",
        description="asked: look only where a name or an attribute is asked about; all: at every image, captions too; none.",
    )
    kinds: tuple[WitnessKind, ...] = Field(
        default=WITNESS_KINDS,
        description="Who is asked; masks needs a segmenter. Weights are fetched when one is first asked.",
    )
    most_asked: int = Field(
        default=120,
        ge=1,
        description="With `asked`, of more images that a word is asked about only so many are looked at, at even steps.",
    )
    most_images: int = Field(
        default=2000,
        ge=0,
        description="With `asked`, attributes of data sets with more images are made without the witnesses that need a network.",
    )


SETTINGS_FILE = "weakspot.toml"


class PartSettings(Section):
    """A model, by registered name and constructor options."""

    name: str = Field(
        default="", description="Registered name; empty: none. `weakspot doctor` lists them."
    )
    options: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Passed to the part; relative paths are relative to this file.",
    )


class EmbedderSettings(Section):
    """The embedder of images and phrases."""

    name: str = Field(
        default="auto",
        description="Registered name; auto: a hub model that is cached or reachable, else the embedded default.",
    )
    options: dict[str, JsonValue] = Field(
        default_factory=dict, description="Passed to the embedder."
    )
    batch_size: int = Field(default=0, ge=0, description="Images per call; 0: as memory allows.")


class EngineSettings(PartSettings):
    """Where heavy work runs."""

    name: str = Field(
        default="local",
        description="local: threads of this process; processes: other processes of this machine; ray: a cluster. Same results.",
    )
    options: dict[str, JsonValue] = Field(
        default_factory=dict, description="Passed to the engine, e.g. {n_workers = 4}."
    )
    provider: ProviderSetting = "auto"

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: object) -> object:
        """Take `engine = "ray"` for a section that only names it."""
        return {"name": given} if isinstance(given, str) else given


class FailureSettings(Section):
    """What counts as a failure."""

    kind: FailureKind = Field(
        default="top-1", description="top-1, top-k, parent, low-confidence or target."
    )
    k: int = Field(default=1, ge=1, description="For top-k and parent.")
    threshold: float = Field(default=0.5, gt=0.0, le=1.0, description="For low-confidence.")
    target: str = Field(
        default="", description="For target: the class that samples are wrongly taken for."
    )
    parents: dict[str, str] = Field(default_factory=dict, description="For parent: label = parent.")
    label_thresholds: dict[str, float] = Field(
        default_factory=dict, description="Multi-label thresholds; others by best F1 on validation."
    )

    def criterion(self) -> FailureCriterion:
        hierarchy = LabelHierarchy(parents=self.parents)
        return FailureCriterion(
            kind=self.kind,
            k=self.k,
            threshold=self.threshold,
            target=self.target or None,
            hierarchy=hierarchy,
        )


class MethodSettings(Section):
    """A method, by registered name and parameters."""

    method: str = Field(description="Registered name.")
    parameters: dict[str, JsonValue] = Field(
        default_factory=dict, description="Parameters of the method; the rest keeps its default."
    )


class DiscoverSettings(Section):
    """How failure slices are looked for."""

    methods: tuple[str, ...] = Field(
        default=("directions",),
        min_length=1,
        description="Registered names of the discoverers; ['auto'] for those that fit the data, ['all'] for all but the baselines.",
    )
    parameters: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict,
        description="Parameters by method, e.g. {directions = {n_folds = 3}}; the rest keeps its default.",
    )
    screen_p: float = Field(
        default=0.05,
        gt=0.0,
        le=1.0,
        description="Candidates whose p-value on the discovery half is larger are not tested on the confirmation half.",
    )
    max_tested: int = Field(
        default=2000,
        ge=1,
        description="At most so many candidates, best first, are tested on the confirmation half; 200 of those that barely stand out.",
    )


class DescribeSettings(MethodSettings):
    """How slices get their words."""

    method: str = Field(default="caption-grammar", description="Registered name of the describer.")


class VerifySettings(MethodSettings):
    """How slices are confirmed."""

    method: str = Field(default="holdout", description="Registered name of the verifier.")
    splits: tuple[Literal["validation", "test"], ...] = Field(
        default=("validation",),
        description="Splits that are halved: one half to discover, the other to confirm.",
    )
    scheme: Literal["halves", "cross-fit"] = Field(
        default="halves",
        description="halves: find on one half, confirm on the other; cross-fit: also swapped; and on all samples for rules made blindly.",
    )


class AttributeSettings(Section):
    """Attributes of the samples that attribute methods cut by."""

    task: str = Field(
        default="",
        description="What the images are for, in a sentence; a language model proposes attributes for it.",
    )
    use_vocabulary: bool = Field(
        default=True,
        description="Assign the built-in attributes, or those that were proposed, to all samples.",
    )
    use_properties: bool = Field(
        default=True,
        description="Measure brightness, contrast, blur, size and colour of all images.",
    )
    columns: tuple[str, ...] = Field(
        default=(),
        description="Metadata columns to cut by; empty: all that have few values or are numbers.",
    )


class RepairSettings(MethodSettings):
    """How slices are repaired."""

    method: str = Field(default="slice-balanced", description="Registered name of the repairer.")
    budget: int = Field(default=0, ge=0, description="Samples that may be taken from the pool.")
    l2: float = Field(
        default=0.0,
        ge=0.0,
        description="Weight decay of the retrained last layer; 0: the one that fits the classifier's own layer best (sgd: 0.0005).",
    )
    tune: bool = Field(
        default=False,
        description="Choose the weight decay of every arm on validation samples instead: by mean accuracy over slices and rests.",
    )
    solver: Literal["exact", "sgd"] = Field(
        default="exact", description="exact: to the optimum; sgd: as in the Refine paper."
    )
    calibrate: bool = Field(
        default=True,
        description="Divide logits by the temperature that fits validation samples best; predictions stay the same.",
    )
    groups: str = Field(
        default="",
        description="Metadata column with group labels: every arm is measured over these groups, the references that need them"
        " (dfr-*, group-dro) train with them, and nothing that looks for failures reads them.",
    )
    synthetic: str = Field(
        default="",
        description="Folder of generated images, one sub-folder a class; relative to this file.",
    )
    label_baselines: bool = Field(
        default=False,
        description="With an unlabelled pool, ask for labels of the baselines' samples too, to compare with them.",
    )
    look_again: bool = Field(
        default=True,
        description="Look for failures again after the repair: which are gone, which are new.",
    )


class GeneratorSettings(Section):
    """The image generator, and the gate that its images pass."""

    name: str = Field(
        default="compose",
        description="Registered name; compose makes images from your own ones and needs no weights.",
    )
    options: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Passed to the generator; relative paths are relative to this file.",
    )
    batch_size: int = Field(default=8, ge=1, description="Images per call of the generator.")
    max_images: int = Field(
        default=20_000,
        ge=1,
        description="No command asks the generator for more new images than this.",
    )
    max_cost: float = Field(
        default=0.0,
        ge=0.0,
        description="Most that a generator which charges may cost; 0: it must be confirmed.",
    )
    least_parents: int = Field(
        default=10, ge=1, description="Fewest different objects in a composed series."
    )
    near_duplicate_bits: int = Field(
        default=3,
        ge=0,
        le=64,
        description="Images of a prompt whose fingerprints differ in no more bits are taken for copies.",
    )
    off_class_margin: float = Field(
        default=0.05,
        ge=0.0,
        description="Rejected if the embedder finds another class closer by more than this cosine; 0: no gate.",
    )


class SegmenterSettings(PartSettings):
    """The segmenter that finds the object of an image, for images that are composed."""

    name: str = Field(default="embedded", description="Registered name; empty: only given masks.")


class SearchSettings(Section):
    """How failures are searched for with a generator."""

    prompt: str = Field(
        default="a realistic photograph of {a class} ({parent}).",
        description="Baseline prompt; {a class} is the class with its article, {class} without, {parent} its kind by WordNet.",
    )
    alpha: float = Field(
        default=0.05,
        gt=0.0,
        lt=1.0,
        description="False discovery rate over all captions that are tried.",
    )
    smallest_gain: float = Field(
        default=0.1,
        gt=0.0,
        lt=1.0,
        description="A caption that fails less than this more often than the baseline is of no interest.",
    )
    most_baseline: int = Field(default=400, ge=8, description="Most images of the baseline prompt.")
    most_per_caption: int = Field(default=400, ge=8, description="Most images of one caption.")
    most_captions: int = Field(
        default=40, ge=1, description="Most captions that are tried, refinements included."
    )
    budget: int = Field(default=6000, ge=16, description="Most images in all.")
    most_sentences: int = Field(default=4, ge=1, description="Sentences in a caption.")
    most_clusters: int = Field(default=4, ge=1, description="Clusters for each wrong label.")


class ReportSettings(Section):
    """What the report shows."""

    order: SliceOrder = Field(
        default=SliceOrder.BOTH,
        description="How slices are ordered: severity (gap), coverage (share of all failures) or both (failures above the rest's rate).",
    )
    n_images: int = Field(
        default=8, ge=0, le=64, description="Images shown at each end of a slice."
    )
    thumbnail_side: int = Field(
        default=160, ge=32, le=512, description="Longest side of a thumbnail in pixels."
    )
    most_megabytes: float = Field(
        default=10.0,
        ge=0.5,
        le=1000.0,
        description="Largest HTML file; with very many slices fewer and smaller images are shown.",
    )


class Settings(Section):
    """Everything in weakspot.toml."""

    seed: int = Field(default=0, ge=0, description="Same seed, same answer.")
    engine: EngineSettings = EngineSettings()
    data: DataSettings = DataSettings()
    boxes: BoxSettings = BoxSettings()
    classifier: PartSettings = PartSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    failure: FailureSettings = FailureSettings()
    captioner: PartSettings = PartSettings()
    answerer: PartSettings = PartSettings()
    language: PartSettings = PartSettings()
    second_embedder: PartSettings = PartSettings()
    witnesses: WitnessSettings = WitnessSettings()
    attributes: AttributeSettings = AttributeSettings()
    discover: DiscoverSettings = DiscoverSettings()
    describe: DescribeSettings = DescribeSettings()
    verify: VerifySettings = VerifySettings()
    repair: RepairSettings = RepairSettings()
    generator: GeneratorSettings = GeneratorSettings()
    segmenter: SegmenterSettings = SegmenterSettings()
    search: SearchSettings = SearchSettings()
    report: ReportSettings = ReportSettings()


def with_engine(settings: Settings, name: str) -> Settings:
    """Return settings with another engine, if one is named; options stay with the engine they were given for."""
    if not name or name == settings.engine.name:
        return settings
    return settings.model_copy(
        update={"engine": EngineSettings(name=name, provider=settings.engine.provider)}
    )


def with_methods(settings: Settings, methods: Sequence[str]) -> Settings:
    """Return settings with other discoverers, if any are given; parameters of methods that stay keep their values."""
    if not methods:
        return settings
    names = tuple(dict.fromkeys(methods))
    kept = {
        name: given
        for name, given in settings.discover.parameters.items()
        if name in names or "all" in names
    }
    return settings.model_copy(
        update={
            "discover": settings.discover.model_copy(update={"methods": names, "parameters": kept})
        }
    )


def with_phrases(settings: Settings, class_name: str, phrases: Sequence[str]) -> Settings:
    """Return settings in which phrases about a class are the only candidates, confirmed on the confirmation half alone.

    Templates given for the method stay. Not both ways round: the phrases may come from looking at the discovery half.
    """
    given = settings.discover.parameters.get("hypothesis", {})
    parameters: dict[str, dict[str, JsonValue]] = {
        "hypothesis": {**given, "phrases": {class_name: [*phrases]}}
    }
    update = {"methods": ("hypothesis",), "parameters": parameters, "screen_p": 1.0}
    verify = settings.verify.model_copy(update={"scheme": "halves"})
    return settings.model_copy(
        update={"discover": settings.discover.model_copy(update=update), "verify": verify}
    )


def with_repair(
    settings: Settings, *, method: str = "", budget: int | None = None, synthetic: str = ""
) -> Settings:
    """Return settings with another repair, as far as one is given; parameters stay with the method they were given for."""
    chosen = settings.repair
    changes: dict[str, object] = {}
    if method and method != chosen.method:
        changes |= {"method": method, "parameters": {}}
    if budget is not None:
        changes["budget"] = budget
    if synthetic:
        changes["synthetic"] = synthetic
    return settings.model_copy(update={"repair": chosen.model_copy(update=changes)})


def toml_value(value: Any) -> str:
    """Return a value as TOML; entries of a table that are None are left out.

    >>> toml_value({"colour": "bgr", "mean": (0.5, 0.5)})
    '{"colour" = "bgr", "mean" = [0.5, 0.5]}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = ", ".join(
            f"{json.dumps(key)} = {toml_value(item)}"
            for key, item in value.items()
            if item is not None
        )
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def load_settings(folder: Path) -> Settings:
    """Read weakspot.toml of a project folder.

    Raises:
        ConfigError: with every problem that the file has.
    """
    path = folder / SETTINGS_FILE
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"There is no {SETTINGS_FILE} here.",
            where=str(folder),
            fix="Run `weakspot init`, or name the project with --project.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{SETTINGS_FILE} is not valid TOML: {error}.", where=str(path)
        ) from error
    return parse_settings(given, where=str(path))


def parse_settings(given: dict[str, Any], *, where: str) -> Settings:
    """Turn nested settings into checked ones; all problems are reported in one error."""
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        problems = [_problem(dict(item)) for item in error.errors()]
        raise_all(
            problems,
            error=ConfigError,
            what="Some settings cannot be used:",
            where=where,
            fix="Correct them and start again.",
        )
        raise
    settings.failure.criterion()
    return settings


def _problem(item: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = ", ".join(sorted(_known_keys(item["loc"][:-1])))
        return f"{name}: there is no such setting (known here: {known})"
    return f"{name}: {item['msg']} (given: {item.get('input')!r})"


def _known_keys(location: tuple[str | int, ...]) -> set[str]:
    model: Any = Settings
    for part in location:
        model = model.model_fields[str(part)].annotation
    return set(model.model_fields)
