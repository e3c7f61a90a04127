"""Tiny models with random weights in their real formats, for parts that speak."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from tokenizers.processors import TemplateProcessing

from weakspot.models.torch.runtime import declare_torchvision_operators
from weakspot.models.transformers.image_to_text import TransformersAnswerer, TransformersCaptioner
from weakspot.models.transformers.text import TransformersTextGenerator

declare_torchvision_operators()

Factory = Callable[[], object]

WORDS = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "photo", "of", "red", "green", "blue", "disc", "dark", "grass", "street", "on", "the",
    "what", "colour", "is", "it", "?", "small", "large", "two", "Question", "Answer", ":", "object",
)  # fmt: skip
LAYER = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
IMAGES = {"size": {"height": 16, "width": 16}}
CHAT = (
    "{% for m in messages %}<s>{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
    "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)


def _word_tokenizer():
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(
        WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="[CLS]", eos_token="[SEP]", **named
    )


def byte_tokenizer(*, chat=None, **named):
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    ends = {"<s>": 256, "</s>": 257, "<pad>": 258}
    made = Tokenizer(BPE({letter: number for number, letter in enumerate(letters)} | ends, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    found = PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", **named
    )
    found.chat_template = chat
    return found


def saved(model, processor, folder, *, seed=1, banned=()):
    """Save a model whose weights are large enough that what it says depends on the image; banned tokens are never said."""
    import torch

    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, values in sorted(model.named_parameters()):
            if values.ndim > 1:
                values.copy_(0.6 * torch.randn(values.shape, generator=draws))
            elif name.endswith("bias"):
                values.zero_()
    if banned:
        model.generation_config.suppress_tokens = list(banned)
    model.save_pretrained(folder)
    for part in processor if isinstance(processor, tuple) else (processor,):
        part.save_pretrained(folder)
    return folder


def _blip_config():
    from transformers import BlipConfig

    special = {"bos_token_id": 2, "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0}
    text = {
        **LAYER,
        **special,
        "encoder_hidden_size": 16,
        "vocab_size": len(WORDS),
        "max_position_embeddings": 48,
    }
    vision = {**LAYER, "image_size": 16, "patch_size": 8, "projection_dim": 8}
    return BlipConfig(
        text_config={**text, "projection_dim": 8},
        vision_config=vision,
        projection_dim=8,
        image_text_hidden_size=8,
    )


def save_blip(folder: Path, *, for_questions: bool = False, seed: int = 4) -> Path:
    import transformers

    kind = (
        transformers.BlipForQuestionAnswering
        if for_questions
        else transformers.BlipForConditionalGeneration
    )
    processor = transformers.BlipProcessor(
        transformers.BlipImageProcessor(**IMAGES), _word_tokenizer()
    )
    return saved(kind(_blip_config()), processor, folder, seed=seed)


def save_blip2(folder: Path, *, language: str = "opt") -> Path:
    import transformers

    special = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    if language == "opt":
        sizes = {
            "hidden_size": 16,
            "ffn_dim": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "word_embed_proj_dim": 16,
        }
        sizes["max_position_embeddings"] = 64
    else:
        sizes = {
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 16,
            "num_layers": 1,
            "num_heads": 2,
            "decoder_start_token_id": 0,
        }
    text = {"model_type": language, **sizes, **special, "vocab_size": len(WORDS) + 1}
    config = transformers.Blip2Config(
        vision_config={**LAYER, "image_size": 16, "patch_size": 8},
        qformer_config={**LAYER, "encoder_hidden_size": 16, "vocab_size": len(WORDS)},
        text_config=text,
        num_query_tokens=4,
        image_token_index=len(WORDS),
    )
    tokenizer = _word_tokenizer()
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 2)]
    )
    processor = transformers.Blip2Processor(
        transformers.BlipImageProcessor(**IMAGES), tokenizer, num_query_tokens=4
    )
    return saved(transformers.Blip2ForConditionalGeneration(config), processor, folder)


def save_git(folder: Path, *, seed: int = 4) -> Path:
    import transformers

    special = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    vision = {**LAYER, "image_size": 16, "patch_size": 8}
    config = transformers.GitConfig(
        vision_config=vision, **LAYER, **special, vocab_size=len(WORDS), max_position_embeddings=64
    )
    crop = {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}
    processor = transformers.GitProcessor(
        transformers.CLIPImageProcessor(**crop), _word_tokenizer()
    )
    return saved(transformers.GitForCausalLM(config), processor, folder, seed=seed)


def save_encoder_decoder(folder: Path) -> Path:
    import transformers

    special = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    decoder = transformers.GPT2Config(
        vocab_size=len(WORDS), n_embd=16, n_layer=1, n_head=2, n_positions=64, **special
    )
    encoder = transformers.ViTConfig(**LAYER, image_size=16, patch_size=8)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = transformers.VisionEncoderDecoderModel(config=config)
    for place in (model.config, model.generation_config):
        place.decoder_start_token_id, place.pad_token_id, place.eos_token_id = 2, 0, 3
    return saved(model, (_word_tokenizer(), transformers.ViTImageProcessor(**IMAGES)), folder)


def save_vilt(folder: Path) -> Path:
    import transformers

    labels = {0: "red", 1: "blue", 2: "two"}
    config = transformers.ViltConfig(
        **LAYER, image_size=32, patch_size=16, vocab_size=len(WORDS), max_position_embeddings=40,
        id2label=labels, label2id={name: number for number, name in labels.items()},
    )  # fmt: skip
    images = transformers.ViltImageProcessor(size={"shortest_edge": 32}, size_divisor=16)
    model = transformers.ViltForQuestionAnswering(config)
    return saved(model, transformers.ViltProcessor(images, _word_tokenizer()), folder)


def save_idefics3(folder: Path) -> Path:
    """Save a chat model that sees; SmolVLM is built the same way."""
    import transformers

    images = transformers.Idefics3ImageProcessor(
        size={"longest_edge": 32}, max_image_size={"longest_edge": 32}, do_image_splitting=False
    )
    processor = transformers.Idefics3Processor(
        images, byte_tokenizer(), image_seq_len=4, chat_template=CHAT
    )
    text = {
        **LAYER,
        "model_type": "llama",
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
    }
    ends = {
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": 258,
        "vocab_size": len(processor.tokenizer),
    }
    config = transformers.Idefics3Config(
        vision_config={**LAYER, "image_size": 32, "patch_size": 8},
        text_config={**text, **ends},
        scale_factor=2,
        image_token_id=processor.image_token_id,
        pad_token_id=258,
    )
    return saved(
        transformers.Idefics3ForConditionalGeneration(config),
        processor,
        folder,
        banned=unprintable(),
    )


def save_llava(folder: Path) -> Path:
    """Save a chat model that sees, of the kind that LLaVA is."""
    import transformers

    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    crop = {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}
    looks = {
        "patch_size": 8,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    }
    processor = transformers.LlavaProcessor(
        transformers.CLIPImageProcessor(**crop), tokenizer, **looks, chat_template=CHAT
    )
    text = {
        **LAYER,
        "model_type": "llama",
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
    }
    ends = {
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": 258,
        "vocab_size": len(tokenizer),
    }
    config = transformers.LlavaConfig(
        vision_config={
            **LAYER,
            "model_type": "clip_vision_model",
            "image_size": 16,
            "patch_size": 8,
            "projection_dim": 8,
        },
        text_config={**text, **ends},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    return saved(
        transformers.LlavaForConditionalGeneration(config), processor, folder, banned=unprintable()
    )


def save_llama(folder: Path, *, is_chat: bool = True, n_positions: int = 4096) -> Path:
    import transformers

    ends = {"bos_token_id": 256, "eos_token_id": 257, "pad_token_id": 258, "vocab_size": 259}
    config = transformers.LlamaConfig(
        **LAYER, **ends, num_key_value_heads=2, max_position_embeddings=n_positions
    )
    tokenizer = byte_tokenizer(chat=CHAT if is_chat else None)
    return saved(transformers.LlamaForCausalLM(config), tokenizer, folder, banned=unprintable())


def unprintable() -> list[int]:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [number for number, letter in enumerate(letters) if not "!" <= letter <= "~"]


def transformers_captioner(folder: Path, _stack: ExitStack) -> Factory:
    return partial(
        TransformersCaptioner, model=save_blip(folder), device="cpu", max_new_tokens=8, batch_size=3
    )


def transformers_answerer(folder: Path, _stack: ExitStack) -> Factory:
    saved = save_blip(folder, for_questions=True)
    return partial(TransformersAnswerer, model=saved, device="cpu", max_new_tokens=4, batch_size=3)


def transformers_text(folder: Path, _stack: ExitStack) -> Factory:
    return partial(
        TransformersTextGenerator, model=save_llama(folder), device="cpu", max_new_tokens=96
    )


BUILDERS = {
    ("captioners", "transformers"): transformers_captioner,
    ("question_answerers", "transformers"): transformers_answerer,
    ("text_generators", "transformers"): transformers_text,
}
