"""Pipelines of the diffusers library by name or from a folder: found, loaded and told apart."""

import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from weakspot.backends.diffusers.loading import (
    dtype_option,
    placed,
    quantised_parts,
    with_lora,
    with_scheduler,
)
from weakspot.backends.diffusers.settings import PipelineSettings
from weakspot.backends.hub import hub_is_off
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import file_hash, model_id
from weakspot.backends.optional_library import require_library
from weakspot.backends.torch.device import (
    declare_torchvision_operators,
    require_torch,
    torch_device,
    torch_dtype,
)
from weakspot.backends.transformers.source import first_line
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.sending import Sendable

PURPOSE = "Diffusion pipelines"
EXTRA = "generate"
INDEX_FILE = "model_index.json"
DRAWING = ("call", "scheduler", "lora", "lora_weight", "quantise")
"""Settings that decide about pixels and that older ids do not know; they count only where they were changed."""


class PipelineSource(Sendable):
    """Loads one pipeline: safetensors only, and code that comes with a model is never run.

    Args:
        settings: which pipeline, and where it runs.
    """

    def __init__(self, settings: PipelineSettings) -> None:
        self.settings = settings

    def identity(self, kind: str, *parts: Any) -> str:
        """Return `kind:name@hash`, the hash over the weights and everything that decides the pixels."""
        chosen = self.settings
        drawing = (
            chosen.steps,
            chosen.guidance_scale,
            chosen.width,
            chosen.height,
            chosen.negative_prompt,
            chosen.variant,
        )
        own = {each.name: each.default for each in fields(chosen)}
        further = [
            f"{name}={getattr(chosen, name)}"
            for name in DRAWING
            if getattr(chosen, name) not in (own[name], {})
        ]
        return model_id(
            kind,
            self.name,
            self.version,
            str(self.dtype),
            chosen.batch_size,
            *drawing,
            *further,
            *parts,
        )

    @property
    def name(self) -> str:
        folder = Path(self.settings.model)
        return folder.name if folder.is_dir() else self.settings.model

    @LoadedOnce
    def torch(self) -> Any:
        return require_library("torch", extra=EXTRA, purpose=PURPOSE)

    @LoadedOnce
    def library(self) -> Any:
        require_torch(PURPOSE)
        declare_torchvision_operators()
        with _no_warnings():
            require_library("transformers", extra=EXTRA, purpose=PURPOSE)
            return require_library("diffusers", extra=EXTRA, purpose=PURPOSE)

    @LoadedOnce
    def device(self) -> Any:
        return torch_device(self.torch, self.settings.device)

    @LoadedOnce
    def dtype(self) -> Any:
        if self.settings.dtype != "auto":
            return torch_dtype(self.torch, self.settings.dtype)
        if self.device.type != "cuda":
            return self.torch.float32
        return self.torch.bfloat16 if "transformer" in self.index else self.torch.float16

    @property
    def class_name(self) -> str:
        return str(self.index["_class_name"])

    @LoadedOnce
    def index(self) -> Mapping[str, Any]:
        """Return what the pipeline says of its parts.

        Raises:
            ModelError: if it is no pipeline, or brings code of its own.
        """
        try:
            found = json.loads(self._index_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._unloadable(error) from error
        if not isinstance(found, dict) or not isinstance(found.get("_class_name"), str):
            raise ModelError(
                "The pipeline runs code of its own, which is never done, or does not say what it is.",
                where=f"{self.settings.model}/{INDEX_FILE}",
                fix="Name a pipeline of a class that diffusers has.",
            )
        return found

    @LoadedOnce
    def version(self) -> str:
        folder = Path(self.settings.model)
        return file_hash(folder) if folder.is_dir() else self._index_file.parent.name

    def kind(self, name: str) -> Any:
        """Return a class of diffusers.

        Raises:
            ModelError: if it has no such class, or cannot import it.
        """
        try:
            with self.quiet():
                return getattr(self.library, name)
        except (AttributeError, ImportError, RuntimeError) as error:
            raise ModelError(
                f"diffusers {self.library.__version__} cannot give its class {name}: {first_line(error)}",
                where=self.settings.model,
                fix="Install a version of diffusers that fits the model and the installed transformers.",
            ) from error

    def pipeline(self, kind: str, **parts: Any) -> Any:
        """Return a pipeline on its device, loaded by a class of diffusers.

        Args:
            kind: name of the class.
            parts: parts that take the place of those of the model; None for parts that are not needed.
        """
        loader = self.kind(kind)
        options = parts | {"revision": self.settings.revision, "variant": self.settings.variant}
        options |= {"use_safetensors": True, "trust_remote_code": False}
        options[dtype_option(self.library.__version__)] = self.dtype
        options |= quantised_parts(self.library, self.settings.quantise, self.dtype)
        with self.quiet():
            made = self._fetch(partial(loader.from_pretrained, self.settings.model, **options))
            if self.settings.scheduler:
                with_scheduler(self.library, made, self.settings.scheduler)
            if self.settings.lora:
                with_lora(made, self.settings.lora, self.settings.lora_weight)
            made = placed(made, self.device, self.settings.offload)
        made.set_progress_bar_config(disable=True)
        if hasattr(getattr(made, "vae", None), "enable_slicing"):
            made.vae.enable_slicing()
        return made

    def part(self, model: str) -> Any:
        """Return a part that is kept apart from the pipeline, such as a ControlNet, by name on the hub or folder."""
        other = PipelineSource(replace(self.settings, model=model, revision=None, variant=None))
        options: dict[str, Any] = {"use_safetensors": True, "trust_remote_code": False}
        options[dtype_option(self.library.__version__)] = self.dtype
        with self.quiet():
            return other._fetch(partial(self.kind("AutoModel").from_pretrained, model, **options))

    def call_options(self, pipeline: Any) -> dict[str, Any]:
        """Return the settings that are not left to the pipeline, by the names of its arguments.

        Raises:
            ConfigError: if the pipeline does not take one of them.
        """
        chosen = self.settings
        wanted = {
            "num_inference_steps": chosen.steps,
            "guidance_scale": chosen.guidance_scale,
            "width": chosen.width,
            "height": chosen.height,
            "negative_prompt": chosen.negative_prompt or None,
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        given |= chosen.call
        unknown = sorted(given.keys() - arguments_of(type(pipeline)))
        if unknown:
            raise ConfigError(
                f"{type(pipeline).__name__} takes no {', '.join(unknown)}.",
                where="options",
                given=unknown,
            )
        true_scale = inspect.signature(pipeline.__call__).parameters.get("true_cfg_scale")
        if "negative_prompt" in given and true_scale is not None:
            scale = given.get("true_cfg_scale", true_scale.default)
            if scale is None or scale <= 1:
                raise ConfigError(
                    f"{type(pipeline).__name__} ignores negative_prompt while true_cfg_scale is {scale}.",
                    where="options",
                    fix="Set call = {true_cfg_scale = 4.0}, which doubles the time, or leave out negative_prompt.",
                )
        return given

    @contextmanager
    def running(self, seed: int) -> Iterator[None]:
        """Run a pipeline without gradients and without moving torch's random state; what goes wrong becomes a ModelError.

        Args:
            seed: of whatever a scheduler draws past the generators that it is given.
        """
        torch = self.torch
        try:
            with (
                torch.inference_mode(),
                torch.random.fork_rng(devices=range(torch.cuda.device_count())),
                self.quiet(),
            ):
                torch.manual_seed(seed)
                yield
        except torch.OutOfMemoryError as error:
            fix = "Set a smaller batch_size, width and height, or dtype."
            raise ModelError(
                "The images do not fit into memory.", where=self.settings.model, fix=fix
            ) from error
        except (RuntimeError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"The pipeline cannot draw: {first_line(error)}", where=self.settings.model
            ) from error

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep progress bars, log lines and warnings of the libraries off the screen: they are about nothing the user did."""
        import transformers

        switches = [self.library.utils.logging, transformers.utils.logging]
        before = [(switch.get_verbosity(), switch.is_progress_bar_enabled()) for switch in switches]
        for switch in switches:
            switch.set_verbosity_error()
            switch.disable_progress_bar()
        try:
            with _no_warnings():
                yield
        finally:
            for switch, (level, was_on) in zip(switches, before, strict=True):
                switch.set_verbosity(level)
                if was_on:
                    switch.enable_progress_bar()

    @LoadedOnce
    def _index_file(self) -> Path:
        folder = Path(self.settings.model)
        if folder.is_dir():
            if not (folder / INDEX_FILE).is_file():
                raise ModelError(
                    f"There is no {INDEX_FILE} in the folder.",
                    where=str(folder),
                    fix="Give a folder that save_pretrained wrote.",
                )
            return folder / INDEX_FILE
        hub = require_library("huggingface_hub", extra=EXTRA, purpose=PURPOSE)
        found = self._fetch(
            partial(
                hub.hf_hub_download,
                self.settings.model,
                INDEX_FILE,
                revision=self.settings.revision,
            )
        )
        return Path(found)

    def _fetch(self, fetch: Callable[..., Any]) -> Any:
        """Load from the folder or the hub's cache, and from the hub itself only if that is not enough and allowed."""
        try:
            return fetch(local_files_only=True)
        except (
            Exception
        ) as error:  # a damaged file or a cache that holds a part of the model can raise anything
            if Path(self.settings.model).is_dir():
                raise self._unloadable(error) from error
            if hub_is_off() is not None:
                raise self._unavailable(f"the hub is off ({hub_is_off()})") from error
        try:
            return fetch(local_files_only=False)
        except OSError as error:
            raise self._unavailable(first_line(error)) from error
        except Exception as error:
            raise self._unloadable(error) from error

    def _unloadable(self, error: Exception) -> ModelError:
        return ModelError(
            f"diffusers cannot load the pipeline: {first_line(error)}",
            where=self.settings.model,
            fix="Weights must be safetensors, in the layout that save_pretrained writes.",
        )

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"The pipeline is not in the hub's cache and cannot be fetched: {reason}",
            where=self.settings.model,
            fix="Check the name and the network, or give the folder of a copy.",
        )


def arguments_of(kind: type[Any]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.__call__).parameters)


@contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
