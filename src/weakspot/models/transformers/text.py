"""Text and JSON from language models of the transformers library, by name or from a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import JsonValue

from weakspot.core.arrays import child_seed
from weakspot.core.bounds import Bounds, Count
from weakspot.core.errors import ModelError
from weakspot.models.loading import LoadedOnce
from weakspot.models.prompts import json_instruction, spoken_answer
from weakspot.models.transformers.json_grammar import is_whole, may_follow, pattern_of
from weakspot.models.transformers.source import SpeakingModel

LANGUAGE_MODEL = "AutoModelForCausalLM"
FEW_TOKENS = 16
TRIED_FIRST = 64
SHARES_BEFORE_HURRY = (0.6, 0.8)


@dataclass(kw_only=True, eq=False)
class TransformersTextGenerator(SpeakingModel):
    """Answers of a causal language model; with a schema the model can only write JSON that fits it.

    Args:
        temperature: 0 for the likeliest words, whatever the seed; larger: drawn by seed. JSON is never drawn.
    """

    max_new_tokens: Count = 512
    temperature: Annotated[float, Bounds(ge=0, le=10)] = 0.0

    @LoadedOnce
    def generator_id(self) -> str:
        return self.identity("transformers-text", float(self.temperature))

    def generate(
        self, prompt: str, *, schema: Mapping[str, JsonValue] | None = None, seed: int = 0
    ) -> str:
        """Return the answer; JSON that fits the schema when one is given."""
        asked = prompt if schema is None else json_instruction(prompt, schema)
        model, tokens = self._model, self._tokens(asked)
        room = self._room(tokens.shape[1])
        guide = (
            None
            if schema is None
            else _JsonGuide(self._tokenizer, schema, n_given=tokens.shape[1], n_most=room)
        )
        with self.running(child_seed(seed, "text", prompt)):
            found = model.generate(
                input_ids=tokens,
                attention_mask=self.torch.ones_like(tokens),
                max_new_tokens=room,
                pad_token_id=self._padding,
                **self._choosing(guide),
            )
        return guide.written() if guide is not None else self._words(found[0, tokens.shape[1] :])

    def _choosing(self, guide: "_JsonGuide | None") -> dict[str, Any]:
        if guide is not None:
            end = self._tokenizer.eos_token_id
            return {
                "do_sample": False,
                "num_beams": 1,
                "logits_processor": [guide],
                **({} if end is None else {"eos_token_id": end}),
            }
        if self.temperature > 0.0:
            return {
                "do_sample": True,
                "num_beams": 1,
                "temperature": float(self.temperature),
                "top_k": 0,
                "top_p": 1.0,
            }
        return {"do_sample": False, "num_beams": 1}

    def _words(self, tokens: Any) -> str:
        text = str(self._tokenizer.decode(tokens, skip_special_tokens=True)).strip()
        return spoken_answer(text, where=self.model)

    def _tokens(self, prompt: str) -> Any:
        """Return the prompt as a chat message where the model has a form for it, otherwise as it is."""
        tokenizer = self._tokenizer
        is_chat = getattr(tokenizer, "chat_template", None) is not None
        if is_chat:
            message = [{"role": "user", "content": prompt}]
            prompt = tokenizer.apply_chat_template(
                message, add_generation_prompt=True, tokenize=False, enable_thinking=False
            )
        found = tokenizer(
            [prompt if is_chat else f"{prompt}\n"],
            add_special_tokens=not is_chat,
            return_tensors="pt",
        )
        return found["input_ids"].to(self._model.device)

    def _room(self, n_given: int) -> int:
        longest = getattr(self.config, "max_position_embeddings", None)
        most = self.max_new_tokens
        room = most if longest is None else min(most, longest - n_given)
        if room < min(FEW_TOKENS, most):
            raise ModelError(
                f"The prompt has {n_given} tokens and leaves no room for an answer: the model reads {longest}.",
                where=self.model,
                fix="Choose a model that reads more.",
            )
        return int(room)

    @property
    def _padding(self) -> int | None:
        tokenizer = self._tokenizer
        found = (
            tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        )
        return None if found is None else int(found)

    @LoadedOnce
    def _model(self) -> Any:
        return self.network(LANGUAGE_MODEL)

    @LoadedOnce
    def _tokenizer(self) -> Any:
        return self.load("AutoTokenizer")


class _JsonGuide:
    """Leaves the model only the likeliest token with which its text can still become JSON that fits a schema.

    Args:
        tokenizer: of the model.
        schema: what the JSON must fit.
        n_given: tokens of the prompt.
        n_most: tokens that may be written; when they run short, nothing is begun that can be left out.
    """

    def __init__(
        self, tokenizer: Any, schema: Mapping[str, JsonValue], *, n_given: int, n_most: int
    ) -> None:
        self._tokenizer = tokenizer
        self._pattern = pattern_of(schema)
        self._n_given = n_given
        self._n_most = n_most
        self._pieces: dict[int, str] = {}
        self._text = ""
        # Some tokenizers drop the space before the first word of a text: a token is read behind another one.
        self._before = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
        self._before_text = self._decode(self._before)

    def __call__(self, tokens: Any, scores: Any) -> Any:
        share_written = (tokens.shape[1] - self._n_given) / self._n_most
        chosen = self._choose(
            scores[0], hurry=sum(share_written > share for share in SHARES_BEFORE_HURRY)
        )
        allowed = scores.new_full(scores.shape, float("-inf"))
        allowed[:, chosen] = 0.0
        return allowed

    def written(self) -> str:
        """Return the text.

        Raises:
            ModelError: if the model could not finish it.
        """
        if not is_whole(self._pattern, self._text):
            raise ModelError(
                "The model's answer was cut off.",
                given=self._text[-80:],
                fix="Raise max_new_tokens.",
            )
        return self._text

    def _choose(self, scores: Any, *, hurry: int) -> int:
        if is_whole(self._pattern, self._text):
            return int(self._tokenizer.eos_token_id or 0)
        tried = 0
        for n_tried in (TRIED_FIRST, len(scores)):
            best = scores.topk(min(n_tried, len(scores))).indices.tolist()
            for token in best[tried:]:
                piece = self._piece(token)
                if piece and may_follow(self._pattern, self._text, piece, hurry=hurry):
                    self._text += piece
                    return int(token)
            tried = len(best)
        raise ModelError(
            "The model has no token with which its answer could become JSON.",
            given=self._text[-80:],
        )

    def _piece(self, token: int) -> str:
        if token not in self._pieces:
            is_special = token in self._tokenizer.all_special_ids
            text = "" if is_special else self._decode([*self._before, token])
            self._pieces[token] = (
                text[len(self._before_text) :] if text.startswith(self._before_text) else ""
            )
        return self._pieces[token]

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))
