"""How likely a picture-to-text model of transformers finds given captions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.caption_sentences import SCORED
from weakspot.backends.transformers_pictures_to_words import PicturesToWords
from weakspot.backends.transformers_source import TransformersSource
from weakspot.core.arrays import FloatArray


class CaptionLikelihoods:
    """Log-likelihoods of captions: sums, never means, over the tokens of a caption.

    Sums are what products over the pictures of a cluster need. A longer caption is less likely for its length alone, so captions
    of equally many sentences are to be compared. That the caption ends there is not part of it: it is judged as a beginning. All
    pictures of a batch get the same caption, so nothing is padded.

    Args:
        source: where the model comes from.
        speaker: the model with its processor.
    """

    def __init__(self, source: TransformersSource, speaker: PicturesToWords) -> None:
        self._source = source
        self._speaker = speaker

    def of(self, pictures: Sequence[Image.Image], captions: Sequence[str]) -> FloatArray:
        """Return log P(caption | picture) [n, m].

        Raises:
            ModelError: if the model cannot read a caption, for example because it is too long.
        """
        found = np.zeros((len(pictures), len(captions)), dtype=np.float32)
        if not found.size:
            return found
        size = self._source.settings.batch_size
        for start in range(0, len(pictures), size):
            found[start : start + size] = self._batch([one.convert("RGB") for one in pictures[start : start + size]], captions)
        return found

    def _batch(self, pictures: Sequence[Image.Image], captions: Sequence[str]) -> FloatArray:
        columns = []
        with self._source.running():
            seen = self._seen(pictures)
            for caption in captions:
                columns.append(self._scored(seen, self._tokens(caption), len(pictures)))
        return np.stack(columns, axis=1)

    def _tokens(self, caption: str) -> list[int]:
        words = " ".join(caption.split())
        spoken = f" {words}" if self._speaker.is_chat and words else words
        return [int(token) for token in self._speaker.tokenizer(spoken, add_special_tokens=False)["input_ids"]]

    def _scored(self, seen: dict[str, Any], tokens: list[int], n_pictures: int) -> FloatArray:
        """Return the log-likelihood [n] of one caption for every picture of a batch."""
        if not tokens:
            return np.zeros(n_pictures, dtype=np.float32)
        torch, given = self._source.torch, dict(seen)
        name = "decoder_input_ids" if "decoder_input_ids" in given else "input_ids"
        prefix = given.pop(name)
        caption = torch.tensor([tokens] * n_pictures, device=prefix.device)
        given |= self._masks(given, name, prefix, caption)
        logits = self._called(given | {name: torch.cat([prefix, caption], dim=1)})[:, -len(tokens) - 1 : -1]
        chosen = torch.log_softmax(logits.float(), dim=-1).gather(2, caption.unsqueeze(2)).squeeze(2)
        return np.asarray(chosen.sum(dim=1).cpu().numpy(), dtype=np.float32)

    def _masks(self, given: dict[str, Any], name: str, prefix: Any, caption: Any) -> dict[str, Any]:
        """Return what stands beside the tokens, one entry a token, as long as they are now."""
        torch = self._source.torch
        beside = {key: values for key, values in given.items() if name == "input_ids" and values.shape == prefix.shape}
        grown = {key: torch.zeros_like(caption, dtype=values.dtype) for key, values in beside.items()}
        if "attention_mask" in grown:
            grown["attention_mask"] += 1
        return {key: torch.cat([values, grown[key]], dim=1) for key, values in beside.items()}

    def _called(self, given: dict[str, Any]) -> Any:
        model = self._speaker.model
        if self._source.config.model_type == "blip":
            return model.text_decoder(**given).logits
        return model(**given, use_cache=False).logits

    def _seen(self, pictures: Sequence[Image.Image]) -> dict[str, Any]:
        """Return all that the model takes beside a caption; what is before the caption is the last entry of its tokens."""
        speaker, config = self._speaker, self._source.config
        if speaker.is_chat:
            return speaker.on_device(speaker.inputs(pictures, SCORED))
        seen = speaker.on_device({"pixel_values": speaker.inputs(pictures, None)["pixel_values"]})
        if config.model_type == "blip":
            shown = speaker.model.vision_model(**seen).last_hidden_state
            return {"encoder_hidden_states": shown, "input_ids": self._repeated([config.text_config.bos_token_id], len(pictures))}
        if config.model_type == "blip-2":
            return seen | self._after_queries(len(pictures))
        if config.is_encoder_decoder:
            shown = speaker.model.get_encoder()(**seen)
            return {"encoder_outputs": shown, "decoder_input_ids": self._repeated([speaker.decoder_start], len(pictures))}
        return seen | {"input_ids": self._repeated([speaker.tokenizer.cls_token_id], len(pictures))}

    def _after_queries(self, n_pictures: int) -> dict[str, Any]:
        """Return the places that BLIP-2 fills with what it sees, and the start of what it writes."""
        config = self._source.config
        places = [config.image_token_index] * config.num_query_tokens
        if config.use_decoder_only_language_model:
            return {"input_ids": self._repeated([*places, config.text_config.bos_token_id], n_pictures)}
        start = self._repeated([self._speaker.decoder_start], n_pictures)
        return {"input_ids": self._repeated(places, n_pictures), "decoder_input_ids": start}

    def _repeated(self, tokens: Sequence[int], n_pictures: int) -> Any:
        return self._source.torch.tensor([list(tokens)] * n_pictures, device=self._speaker.model.device)
