"""What all classifiers share whose network is a torch module."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weakspot.backends.head_fitting import check_repaired, fitted_head, not_verified
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.new_files import files_in, main_first, new_files
from weakspot.backends.torch.head import changed_tensors, layer_kind, rounding
from weakspot.backends.torch.network import TorchNetwork, weights_hash
from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput
from weakspot.core.sending import Sendable


class NetworkClassifier(Sendable, ABC):
    """Answers, features and head of a network that is loaded on first use."""

    @abstractmethod
    def _load_network(self) -> TorchNetwork:
        """Return the network, ready to classify."""

    @abstractmethod
    def _probes(self) -> list[AnyArray]:
        """Return prepared probe images."""

    @abstractmethod
    def named_tensors(self) -> Mapping[str, Any]:
        """Return the named tensors as the user keeps them, read anew."""

    @abstractmethod
    def _write_rows(self, rows: Head, layer: str, folder: Path) -> Path:
        """Write the network with these rows in a layer into an empty folder and return the main file."""

    @abstractmethod
    def _read_back(self, path: Path) -> "NetworkClassifier":
        """Return the same classifier with the network that was written to a file."""

    @LoadedOnce
    def _network(self) -> TorchNetwork:
        return self._load_network()

    @property
    def head(self) -> Head | None:
        """The last linear layer, checked against the network's own answer; None where there is none."""
        return self._network.reader.head

    @property
    def features_note(self) -> str | None:
        return self._network.reader.note

    @property
    def layer_kind(self) -> str | None:
        """The kind of number that the last layer is kept in, for example `float16`; None without a head."""
        name = f"{self._network.runner.layer_name}.weight"
        tensors = self.named_tensors() if self.head is not None else {}
        return str(tensors[name].dtype).removeprefix("torch.") if name in tensors else None

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        return self._network.classify(prepared)

    def write_repaired(self, head: Head, folder: Path) -> tuple[Path, ...]:
        """Write the network with this last layer into a folder, in the format it was read from; all other tensors stay as they are.

        Raises:
            ModelError: if a file is there already, the layer does not fit, or what was written does not hold when read back.
        """
        runner, reader = self._network.runner, self._network.reader
        rows = fitted_head(
            head, self.head, self.features_note, is_single=reader.is_single, where=reader.where
        )
        with new_files(folder) as staging:
            main = self._write_rows(rows, runner.layer_name, staging)
            after = self._read_back(main)
            own = {f"{runner.layer_name}.weight", f"{runner.layer_name}.bias"}
            before, found = self.named_tensors(), after.named_tensors()
            if not changed_tensors(before, found) <= own:
                raise not_verified("a tensor beside the layer changed")
            epsilon = rounding(
                layer_kind(before, runner.layer_name), str(runner.dtype).removeprefix("torch.")
            )
            is_cpu = str(runner.device) == "cpu"
            check_repaired(self, after, head, self._probes(), epsilon=epsilon, is_exact=is_cpu)
            names = files_in(staging)
        return main_first(folder, names, main.relative_to(staging))

    def _check(self, module: Any) -> Any:
        if weights_hash(module) != self._network.weights_hash:
            raise ModelError(
                "The weights changed since they were loaded.",
                where=self._network.runner.where,
                fix="Start again with the weights as they are.",
            )
        return module
