"""Phrases to sentence embeddings, with an ONNX sentence encoder and its tokenizer file."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.backends.onnx.providers import CPU
from weakspot.backends.onnx.session import make_session
from weakspot.core.arrays import FloatArray, IntArray, unit_rows
from weakspot.core.errors import ModelError
from weakspot.core.sending import Sendable


class SentenceEncoder(Sendable):
    """Mean-pooled unit vectors of phrases.

    Phrases of the same number of tokens go through the graph together and are
    never padded, so the embedding of a phrase does not depend on its neighbours.

    Args:
        model_path: ONNX file with the inputs `input_ids`, `attention_mask` and,
            if it wants them, `token_type_ids`; its first output holds one embedding
            per token [m, tokens, d] or one per phrase [m, d].
        tokenizer_path: The `tokenizer.json` that belongs to the model.
        max_tokens: Longer phrases are cut.
        threads: Threads that the graph may use; 0 leaves it to onnxruntime.
    """

    def __init__(
        self, model_path: Path, tokenizer_path: Path, *, max_tokens: int = 128, threads: int = 0
    ) -> None:
        self._model_path = Path(model_path)
        self._tokenizer_path = Path(tokenizer_path)
        self._max_tokens = max_tokens
        self._threads = threads

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> FloatArray:
        """Return the unit vectors [m, d] of phrases, in the order given."""
        token_ids = [self._token_ids(text) for text in texts]
        by_length: dict[int, list[int]] = {}
        for row, ids in enumerate(token_ids):
            by_length.setdefault(len(ids), []).append(row)
        pooled: dict[int, FloatArray] = {}
        for length in sorted(by_length):
            rows = by_length[length]
            for start in range(0, len(rows), batch_size):
                chunk = rows[start : start + batch_size]
                embeddings = self._pool(np.array([token_ids[row] for row in chunk], dtype=np.int64))
                pooled.update(zip(chunk, embeddings, strict=True))
        if not pooled:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return unit_rows(np.stack([pooled[row] for row in range(len(texts))]))

    @cached_property
    def dimension(self) -> int:
        return int(self._pool(np.array([self._token_ids("a")], dtype=np.int64)).shape[1])

    def _token_ids(self, text: str) -> list[int]:
        if not isinstance(text, str) or not text.strip():
            raise ModelError(
                "A phrase to embed is empty.", given=text, fix="Leave empty phrases out."
            )
        return list(self._tokenizer.encode(text).ids)

    def _pool(self, ids: IntArray) -> FloatArray:
        values = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        wanted = {given.name for given in self._session.get_inputs()}
        output = np.asarray(
            self._session.run(None, {name: values[name] for name in sorted(wanted & set(values))})[
                0
            ]
        )
        per_token_rank = 3
        return np.asarray(
            output.mean(axis=1) if output.ndim == per_token_rank else output, dtype=np.float32
        )

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        _require_file(self._tokenizer_path)
        tokenizer = Tokenizer.from_file(str(self._tokenizer_path))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        _require_file(self._model_path)
        # Phrases are few and short, and the same id must give the same embeddings everywhere.
        return make_session(self._model_path, threads=self._threads, providers=[CPU])


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise ModelError(
            "A file of the sentence encoder is missing.",
            where=str(path),
            fix="Run `weakspot doctor`.",
        )
