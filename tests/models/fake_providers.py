"""An onnxruntime that claims to have other providers: they are listed, given options and asked, and the processor computes."""

from typing import Any

import onnxruntime
import pytest

from weakspot.models.onnx import session

CUDA, DML = "CUDAExecutionProvider", "DmlExecutionProvider"
CPU = "CPUExecutionProvider"


class FakeProviders:
    """What was asked of sessions, by provider.

    Args:
        names: installed beside the processor.
        silent: those that onnxruntime leaves out without a word, as it does where a library is missing.
        failing: those with which no session can be opened.
        refusing: those with which sessions of files cannot be opened.
    """

    def __init__(self, *names: str, silent=(), failing=(), refusing=()) -> None:
        self.names, self.silent, self.failing, self.refusing = names, silent, failing, refusing
        self.opened: list[tuple[str, dict[str, str], bool]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "FakeProviders":
        real, fake = onnxruntime.InferenceSession, self

        class Session:
            def __init__(
                self, source: Any, options: Any, *, providers: list[str], provider_options: Any = ()
            ) -> None:
                first = providers[0]
                if first in fake.failing or (first in fake.refusing and isinstance(source, str)):
                    raise RuntimeError(f"{first}: no such device")
                given = dict(provider_options[0]) if provider_options else {}
                fake.opened.append((first, given, options.enable_mem_pattern))
                self._session = real(source, options, providers=[CPU])
                self._names = [one for one in providers if one not in fake.silent]

            def get_providers(self) -> list[str]:
                return self._names

            def __getattr__(self, name: str) -> Any:
                return getattr(self._session, name)

        monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [*self.names, CPU])
        monkeypatch.setattr(session, "_notes", {})
        session._tried.cache_clear()
        return self
