"""Models of the transformers library by name or from a folder: found, loaded and told apart, and what is known of their hub."""

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weakspot.core.bounds import Count, check_bounds
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.registry import Sendable
from weakspot.models.loading import LoadedOnce, require_few_bits, require_library
from weakspot.models.model_hash import file_hash, model_id
from weakspot.models.torch.device import (
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


@dataclass(frozen=True, kw_only=True)
class TransformersSettings:
    """Which model, where it runs, and how much it says.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16, bfloat16, or auto for what the weights are stored in.
        device_map: how accelerate spreads the model over devices, such as auto; empty to keep it on one device.
        quantise: 4-bit or 8-bit to load weights so by bitsandbytes; empty to load them as they are.
        batch_size: images a call of the model.
        max_new_tokens: most tokens of an answer.
    """

    model: str
    revision: str | None = None
    device: str = "auto"
    dtype: str = "float32"
    device_map: str = ""
    quantise: str = ""
    batch_size: Count = 8
    max_new_tokens: Count = 40

    def __post_init__(self) -> None:
        problems = [] if self.model.strip() else ["model: must be a name on the hub or a folder"]
        if self.quantise not in ("", *QUANTISED):
            problems.append(f"quantise: must be one of {list(QUANTISED)}, is {self.quantise!r}")
        if self.device_map and self.device != "auto":
            problems.append("device and device_map: give one of them")
        check_bounds(self, where="options", problems=problems)


class TransformersSource(Sendable):
    """Loads the pieces of one model; code that comes with a model is never run.

    Args:
        settings: which model, and where it runs.
    """

    def __init__(self, settings: TransformersSettings) -> None:
        self.settings = settings

    def identity(self, kind: str, *parts: Any) -> str:
        """Return `kind:name@hash`, the hash over the weights and everything that decides the words."""
        folder = Path(self.settings.model)
        name = folder.name if folder.is_dir() else self.settings.model
        chosen = self.settings
        numbers = (
            str(self.config.dtype).removeprefix("torch.") if chosen.dtype == AUTO else chosen.dtype
        )
        loaded = [chosen.quantise] if chosen.quantise else []
        return model_id(kind, name, self._version, numbers, chosen.max_new_tokens, *loaded, *parts)

    @LoadedOnce
    def torch(self) -> Any:
        return require_torch(PURPOSE)

    @LoadedOnce
    def library(self) -> Any:
        require_torch(PURPOSE)
        declare_torchvision_operators()
        return require_library("transformers", extra="hub", purpose=PURPOSE)

    @LoadedOnce
    def config(self) -> Any:
        return self.load("AutoConfig")

    def model(self, kind: str) -> Any:
        """Return the model, ready to run.

        Args:
            kind: class of transformers that loads it.

        Raises:
            ModelError: if the weights are not those of such a model.
        """
        module, report = self.load(kind, output_loading_info=True, **self._loading())
        missing = sorted(report.get("missing_keys", ()))
        if missing:
            raise ModelError(
                f"The model was not trained for this: {len(missing)} weights are missing, such as {missing[:2]}.",
                where=self.settings.model,
                fix=f"Name a model that transformers loads as {kind.removeprefix('AutoModelFor')}.",
            )
        if self.settings.device_map or self.settings.quantise:
            return module.eval()
        return module.to(torch_device(self.torch, self.settings.device)).eval()

    def _loading(self) -> dict[str, Any]:
        """Return in which numbers the weights are loaded, and where to, by the names of the installed version."""
        chosen, library = self.settings, self.library
        is_first_form = int(library.__version__.partition(".")[0]) < 5  # noqa: PLR2004 - version 5 renamed the option
        numbers = AUTO if chosen.dtype == AUTO else torch_dtype(self.torch, chosen.dtype)
        options: dict[str, Any] = {"torch_dtype" if is_first_form else "dtype": numbers}
        if chosen.device_map or chosen.quantise:
            require_library("accelerate", extra="generate", purpose="Models on several devices")
            options["device_map"] = chosen.device_map or AUTO
        if chosen.quantise:
            require_few_bits()
            options["quantization_config"] = library.BitsAndBytesConfig(
                **{QUANTISED[chosen.quantise]: True}
            )
        return options

    def load(self, kind: str, **options: Any) -> Any:
        """Load from the folder or the hub's cache, and from the hub itself only if that is not enough and allowed."""
        loader, name = getattr(self.library, kind), self.settings.model
        options |= {"revision": self.settings.revision, "trust_remote_code": False}
        with _quiet(self.library):
            try:
                return loader.from_pretrained(name, local_files_only=True, **options)
            except Exception as error:  # a damaged file or a cache that holds a part of the model can raise anything
                if Path(name).is_dir() or isinstance(error, ImportError):
                    raise self._unloadable(error) from error
                if hub_is_off() is not None:
                    raise self._unavailable(f"the hub is off ({hub_is_off()})") from error
            try:
                return loader.from_pretrained(name, **options)
            except OSError as error:
                raise self._unavailable(first_line(error)) from error
            except Exception as error:
                raise self._unloadable(error) from error

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a model without gradients and without moving torch's random state; what goes wrong becomes a ModelError."""
        torch = self.torch
        try:
            devices = range(torch.cuda.device_count())
            with (
                torch.inference_mode(),
                torch.random.fork_rng(devices=devices),
                _quiet(self.library),
            ):
                yield
        except (RuntimeError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"The model cannot answer: {first_line(error)}", where=self.settings.model
            ) from error

    @LoadedOnce
    def _version(self) -> str:
        folder = Path(self.settings.model)
        if folder.is_dir():
            return file_hash(folder)
        return str(getattr(self.config, "_commit_hash", None) or self.settings.revision)

    def _unloadable(self, error: Exception) -> ModelError:
        return ModelError(
            f"transformers cannot load the model: {first_line(error)}", where=self.settings.model
        )

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"The model is not in the hub's cache and cannot be fetched: {reason}",
            where=self.settings.model,
            fix="Check the name and the network, or give the folder of a copy.",
        )


@contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """Keep progress bars and load reports, which are written straight to the terminal, out of it."""
    switch = library.utils.logging
    was_on, level = switch.is_progress_bar_enabled(), switch.get_verbosity()
    switch.disable_progress_bar()
    switch.set_verbosity_error()
    try:
        yield
    finally:
        switch.set_verbosity(level)
        if was_on:
            switch.enable_progress_bar()


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n", maxsplit=1)[0][:300]
