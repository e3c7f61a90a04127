"""What all classifiers share whose network is a torch module."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.torch_network import TorchNetwork
from weakspot.core.arrays import AnyArray
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput


class NetworkClassifier(ABC):
    """Answers, features and head of a network that is loaded on first use."""

    @abstractmethod
    def _load_network(self) -> TorchNetwork:
        """Return the network, ready to classify."""

    @LoadedOnce
    def _network(self) -> TorchNetwork:
        return self._load_network()

    @property
    def head(self) -> Head | None:
        """The last linear layer, checked against the network's own answer; None where there is none."""
        return self._network.reader.head

    @property
    def features_note(self) -> str | None:
        """Why there is no head, or None."""
        return self._network.reader.note

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        """Return probabilities, and features where the network has a last linear layer."""
        return self._network.classify(prepared)
