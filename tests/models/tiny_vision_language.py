"""Tiny vision-language models of today with random weights, in their real formats."""

from pathlib import Path

from tests.models.tiny_speakers import CHAT, LAYER, byte_tokenizer, saved, unprintable


def save_florence2(folder: Path) -> Path:
    """Save a model that is told what to do by a task token."""
    import transformers

    tokenizer = byte_tokenizer(extra_special_tokens={"image_token": "<image>"})
    images = transformers.CLIPImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False)
    images.image_seq_length = 5
    processor = transformers.Florence2Processor(images, tokenizer)
    vision = {
        "depths": (1,),
        "patch_size": (7,),
        "patch_stride": (16,),
        "patch_padding": (3,),
        "patch_prenorm": (False,),
        "embed_dim": (16,),
        "num_heads": (2,),
        "num_groups": (2,),
        "window_size": 2,
        "projection_dim": 16,
        "drop_path_rate": 0.0,
        "max_position_embeddings": 8,
    }
    text = {
        "model_type": "bart",
        "vocab_size": len(tokenizer),
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
        "max_position_embeddings": 256,
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": 258,
        "decoder_start_token_id": 257,
        "forced_eos_token_id": None,
    }
    config = transformers.Florence2Config(
        vision_config=vision, text_config=text, image_token_id=tokenizer.image_token_id
    )
    model = transformers.Florence2ForConditionalGeneration(config)
    return saved(model, processor, folder, banned=unprintable())


def save_qwen_vl(folder: Path) -> Path:
    """Save a chat model that sees, whose processor bounds the number of pixels."""
    return saved(*qwen_vl_parts(), folder, seed=5, banned=unprintable())


def qwen_vl_parts():
    """Return a model and its processor."""
    import transformers

    tokenizer, tokens = _qwen_tokenizer()
    processor = _qwen_processor(
        transformers.Qwen2_5_VLProcessor, transformers.Qwen2VLVideoProcessor, tokenizer
    )
    config = transformers.Qwen2_5_VLConfig(
        vision_config={
            "depth": 1,
            "hidden_size": 16,
            "out_hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "patch_size": 8,
            "window_size": 32,
            "fullatt_block_indexes": [0],
        },
        text_config=_qwen_text(tokenizer),
        **tokens,
    )
    return transformers.Qwen2_5_VLForConditionalGeneration(config), processor


def save_qwen3_vl(folder: Path, *, seed: int = 0) -> Path:
    """Save a chat model that sees and gives what it sees to several layers."""
    import transformers

    tokenizer, tokens = _qwen_tokenizer()
    processor = _qwen_processor(
        transformers.Qwen3VLProcessor, transformers.Qwen3VLVideoProcessor, tokenizer
    )
    config = transformers.Qwen3VLConfig(
        vision_config={
            "depth": 2,
            "hidden_size": 16,
            "out_hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "patch_size": 8,
            "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0],
        },
        text_config={**_qwen_text(tokenizer), "head_dim": 8, "num_hidden_layers": 2},
        **tokens,
    )
    model = transformers.Qwen3VLForConditionalGeneration(config)
    return saved(model, processor, folder, seed=seed, banned=unprintable())


def _qwen_tokenizer():
    tokenizer = byte_tokenizer()
    names = ["<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"]
    tokenizer.add_special_tokens({"additional_special_tokens": names})
    fields = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    return tokenizer, dict(zip(fields, tokenizer.convert_tokens_to_ids(names), strict=True))


def _qwen_processor(kind, videos, tokenizer):
    import transformers

    images = transformers.Qwen2VLImageProcessor(
        size={"shortest_edge": 16 * 16, "longest_edge": 32 * 32}, patch_size=8, merge_size=2
    )
    template = CHAT.replace("<image>", "<|vision_start|><|image_pad|><|vision_end|>")
    seen = videos(patch_size=8, merge_size=2)
    return kind(images, tokenizer, seen, chat_template=template)


def _qwen_text(tokenizer):
    return {
        **LAYER,
        "num_key_value_heads": 2,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": 1024,
        "rope_parameters": {
            "rope_type": "default",
            "mrope_section": [1, 1, 2],
            "rope_theta": 10000.0,
        },
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": 258,
    }


def save_gemma3(folder: Path, *, seed: int = 1) -> Path:
    """Save a chat model that sees, with tokens around its images and windows of attention."""
    import transformers

    marks = {"boi_token": "<boi>", "eoi_token": "<eoi>", "image_token": "<image>"}
    tokenizer = byte_tokenizer(extra_special_tokens=marks)
    images = transformers.Gemma3ImageProcessor(size={"height": 16, "width": 16})
    template = CHAT.replace("<image>", "<boi>")
    processor = transformers.Gemma3Processor(
        images, tokenizer, chat_template=template, image_seq_length=4
    )
    config = transformers.Gemma3Config(
        vision_config={**LAYER, "image_size": 16, "patch_size": 4},
        text_config={
            **LAYER,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": 1024,
            "bos_token_id": 256,
            "eos_token_id": 257,
            "pad_token_id": 258,
        },
        mm_tokens_per_image=4,
        tie_word_embeddings=False,
        boi_token_index=tokenizer.boi_token_id,
        eoi_token_index=tokenizer.eoi_token_id,
        image_token_index=tokenizer.image_token_id,
        bos_token_id=256,
        eos_token_id=257,
        pad_token_id=258,
    )
    model = transformers.Gemma3ForConditionalGeneration(config)
    return saved(model, processor, folder, seed=seed, banned=unprintable())


def save_smolvlm(folder: Path) -> Path:
    """Save a chat model that sees; its processor is the one that does not read videos, which needs one library less."""
    import transformers

    images = transformers.Idefics3ImageProcessor(
        size={"longest_edge": 32}, max_image_size={"longest_edge": 32}, do_image_splitting=False
    )
    processor = transformers.Idefics3Processor(
        images, byte_tokenizer(), image_seq_len=4, chat_template=CHAT
    )
    config = transformers.SmolVLMConfig(
        vision_config={**LAYER, "image_size": 32, "patch_size": 8},
        text_config={
            **LAYER,
            "model_type": "llama",
            "num_key_value_heads": 2,
            "max_position_embeddings": 1024,
            "vocab_size": len(processor.tokenizer),
            "bos_token_id": 256,
            "eos_token_id": 257,
            "pad_token_id": 258,
        },
        scale_factor=2,
        image_token_id=processor.image_token_id,
        pad_token_id=258,
    )
    model = transformers.SmolVLMForConditionalGeneration(config)
    return saved(model, processor, folder, banned=unprintable())
