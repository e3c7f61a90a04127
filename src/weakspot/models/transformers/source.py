"""Models of the transformers library by name or from a folder: found, loaded and told apart, and what is known of their hub."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from weakspot.core.bounds import Count, check_bounds
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.registry import Sendable
from weakspot.models.loading import (
    LoadedOnce,
    file_hash,
    first_line,
    model_id,
    require_few_bits,
    require_library,
)
from weakspot.models.torch.runtime import (
    declare_torchvision_operators,
    require_torch,
    torch_device,
    torch_dtype,
)

OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
TIMEOUT_SECONDS = 3.0
_WEIGHTS = ("*.safetensors", "*.bin")
_FOUND_BELOW = 500


def hub_is_off() -> str | None:
    """Return the variable that forbids asking the hub, or None."""
    for name in OFFLINE_VARIABLES:
        if os.environ.get(name, "").strip().lower() in {"1", "true", "yes", "on"}:
            return name
    return None


def hub_cache_folder() -> Path:
    if os.environ.get("HF_HUB_CACHE"):
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root).expanduser() / "huggingface" / "hub"


def is_in_hub_cache(name: str) -> bool:
    """Return whether a model's configuration and weights are in the hub's cache.

    Args:
        name: `organisation/model`.
    """
    snapshots = hub_cache_folder() / f"models--{name.replace('/', '--')}" / "snapshots"
    if not snapshots.is_dir():
        return False
    return any(
        (folder / "config.json").is_file()
        and any(path.is_file() for pattern in _WEIGHTS for path in folder.glob(pattern))
        for folder in snapshots.iterdir()
    )


def can_load_hub_models() -> bool:
    return all(
        importlib.util.find_spec(library) is not None for library in ("torch", "transformers")
    )


def hub_answers(*, timeout_seconds: float = TIMEOUT_SECONDS, address: str | None = None) -> bool:
    """Return whether the hub answers in time; it is not asked when that is forbidden.

    Args:
        timeout_seconds: how long to wait.
        address: by default the one that huggingface_hub uses.
    """
    if hub_is_off() is not None:
        return False
    asked = address if address is not None else _hub_address()
    if asked is None:
        return False
    import httpx

    try:
        return (
            httpx.head(asked, timeout=timeout_seconds, follow_redirects=True).status_code
            < _FOUND_BELOW
        )
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        return False


def _hub_address() -> str | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import constants

    return str(constants.ENDPOINT)


AUTO = "auto"
QUANTISED = {"4-bit": "load_in_4bit", "8-bit": "load_in_8bit"}
PURPOSE = "Captioners, answerers and language models of the hub"


@dataclass(kw_only=True, eq=False)
class HubModel(Sendable):
    """A model by name on the hub or from a folder; code that comes with it is never run.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16 or bfloat16.
    """

    model: str
    revision: str | None = None
    device: str = AUTO
    dtype: str = "float32"

    loaded_by: ClassVar[str] = "transformers"
    kind_of_model: ClassVar[str] = "model"
    cannot_run: ClassVar[str] = "The model cannot answer"
    fix_of_files: ClassVar[str | None] = None
    fix_of_name: ClassVar[str] = "give the folder of a copy"

    def __post_init__(self) -> None:
        self.model = str(self.model)
        check_bounds(self, where="options", problems=self._problems())

    def _problems(self) -> list[str]:
        return [] if self.model.strip() else ["model: must be a name on the hub or a folder"]

    @property
    def is_folder(self) -> bool:
        return Path(self.model).is_dir()

    @property
    def name(self) -> str:
        return Path(self.model).name if self.is_folder else self.model

    @LoadedOnce
    def torch(self) -> Any:
        return require_torch(PURPOSE)

    @LoadedOnce
    def library(self) -> Any:
        require_torch(PURPOSE)
        declare_torchvision_operators()
        return require_library("transformers", extra="hub", purpose=PURPOSE)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep progress bars and load reports, which are written straight to the terminal, out of it."""
        switches = [library.utils.logging for library in self._noisy]
        before = [(switch.get_verbosity(), switch.is_progress_bar_enabled()) for switch in switches]
        for switch in switches:
            switch.set_verbosity_error()
            switch.disable_progress_bar()
        try:
            yield
        finally:
            for switch, (level, was_on) in zip(switches, before, strict=True):
                switch.set_verbosity(level)
                if was_on:
                    switch.enable_progress_bar()

    @property
    def _noisy(self) -> tuple[Any, ...]:
        return (self.library,)

    @contextmanager
    def running(self, seed: int | None = None) -> Iterator[None]:
        """Run a model without gradients and without moving torch's random state; what goes wrong becomes a ModelError.

        Args:
            seed: of whatever is drawn past the generators that the model is given; None if nothing is drawn.
        """
        torch = self.torch
        try:
            with (
                torch.inference_mode(),
                torch.random.fork_rng(devices=range(torch.cuda.device_count())),
                self.quiet(),
            ):
                if seed is not None:
                    torch.manual_seed(seed)
                yield
        except torch.OutOfMemoryError as error:
            fix = "Set a smaller batch_size (of images also width and height), or another dtype."
            raise ModelError(
                "What is asked for does not fit into memory.", where=self.model, fix=fix
            ) from error
        except (RuntimeError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{self.cannot_run}: {first_line(error)}", where=self.model) from error

    def fetched(self, fetch: Callable[..., Any]) -> Any:
        """Load from the folder or the hub's cache, and from the hub itself only if that is not enough and allowed."""
        try:
            return fetch(local_files_only=True)
        except (
            Exception
        ) as error:  # a damaged file or a cache that holds a part of the model can raise anything
            if self.is_folder or isinstance(error, ImportError):
                raise self.unloadable(error) from error
            if hub_is_off() is not None:
                raise self._unavailable(f"the hub is off ({hub_is_off()})") from error
        try:
            return fetch(local_files_only=False)
        except OSError as error:
            raise self._unavailable(first_line(error)) from error
        except Exception as error:
            raise self.unloadable(error) from error

    def unloadable(self, error: Exception) -> ModelError:
        return ModelError(
            f"{self.loaded_by} cannot load the {self.kind_of_model}: {first_line(error)}",
            where=self.model,
            fix=self.fix_of_files,
        )

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"The {self.kind_of_model} is not in the hub's cache and cannot be fetched: {reason}",
            where=self.model,
            fix=f"Check the name and the network, or {self.fix_of_name}.",
        )


@dataclass(kw_only=True, eq=False)
class TransformersModel(HubModel):
    """A model of the transformers library, piece by piece."""

    def identity(self, kind: str, *parts: Any) -> str:
        """Return `kind:name@hash`, the hash over the weights and everything that decides the answers."""
        stored = self.dtype == AUTO
        numbers = str(self.config.dtype).removeprefix("torch.") if stored else self.dtype
        return model_id(kind, self.name, self.version, numbers, *self._decides, *parts)

    @property
    def _decides(self) -> tuple[Any, ...]:
        # The ids of models that write nothing were first made with this number of tokens.
        return (40,)

    @LoadedOnce
    def config(self) -> Any:
        return self.load("AutoConfig")

    @LoadedOnce
    def version(self) -> str:
        if self.is_folder:
            return file_hash(Path(self.model))
        return str(getattr(self.config, "_commit_hash", None) or self.revision)

    def load(self, kind: str, **options: Any) -> Any:
        """Return a piece of the model, by the class of transformers that loads it."""
        loader = getattr(self.library, kind)
        options |= {"revision": self.revision, "trust_remote_code": False}
        with self.quiet():
            return self.fetched(partial(loader.from_pretrained, self.model, **options))

    def network(self, kind: str) -> Any:
        """Return the network, ready to run.

        Args:
            kind: class of transformers that loads it.

        Raises:
            ModelError: if the weights are not those of such a model.
        """
        options = self._loading()
        module, report = self.load(kind, output_loading_info=True, **options)
        missing = sorted(report.get("missing_keys", ()))
        if missing:
            raise ModelError(
                f"The model was not trained for this: {len(missing)} weights are missing, such as {missing[:2]}.",
                where=self.model,
                fix=f"Name a model that transformers loads as {kind.removeprefix('AutoModelFor')}.",
            )
        is_placed = "device_map" in options
        return (module if is_placed else module.to(torch_device(self.torch, self.device))).eval()

    @property
    def is_first_form(self) -> bool:
        """Whether transformers is older than version 5, which renamed some options."""
        return int(self.library.__version__.partition(".")[0]) < 5  # noqa: PLR2004

    def _loading(self) -> dict[str, Any]:
        """Return in which numbers the weights are loaded, and where to, by the names of the installed version."""
        numbers = AUTO if self.dtype == AUTO else torch_dtype(self.torch, self.dtype)
        return {"torch_dtype" if self.is_first_form else "dtype": numbers}


@dataclass(kw_only=True, eq=False)
class SpeakingModel(TransformersModel):
    """A model that writes words.

    Args:
        dtype: float32, float16, bfloat16, or auto for what the weights are stored in.
        device_map: how accelerate spreads the model over devices, such as auto; empty to keep it on one device.
        quantise: 4-bit or 8-bit to load weights so by bitsandbytes; empty to load them as they are.
        max_new_tokens: most tokens of an answer.
    """

    device_map: str = ""
    quantise: str = ""
    max_new_tokens: Count = 40

    def _problems(self) -> list[str]:
        problems = super()._problems()
        if self.quantise not in ("", *QUANTISED):
            problems.append(f"quantise: must be one of {list(QUANTISED)}, is {self.quantise!r}")
        if self.device_map and self.device != AUTO:
            problems.append("device and device_map: give one of them")
        return problems

    @property
    def _decides(self) -> tuple[Any, ...]:
        return (self.max_new_tokens, *([self.quantise] if self.quantise else []))

    def _loading(self) -> dict[str, Any]:
        options = super()._loading()
        if self.device_map or self.quantise:
            require_library("accelerate", extra="generate", purpose="Models on several devices")
            options["device_map"] = self.device_map or AUTO
        if self.quantise:
            require_few_bits()
            options["quantization_config"] = self.library.BitsAndBytesConfig(
                **{QUANTISED[self.quantise]: True}
            )
        return options
