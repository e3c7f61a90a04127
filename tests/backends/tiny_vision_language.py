"""Tiny vision-language models of today with random weights, in their real formats."""

from pathlib import Path

from tests.backends.tiny_speakers import CHAT, LAYER, byte_tokenizer, saved, unprintable


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
    import transformers

    tokenizer = byte_tokenizer()
    names = ["<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"]
    tokenizer.add_special_tokens({"additional_special_tokens": names})
    image, video, start, end = tokenizer.convert_tokens_to_ids(names)
    images = transformers.Qwen2VLImageProcessor(
        size={"shortest_edge": 16 * 16, "longest_edge": 32 * 32}, patch_size=8, merge_size=2
    )
    videos = transformers.Qwen2VLVideoProcessor(patch_size=8, merge_size=2)
    template = CHAT.replace("<image>", "<|vision_start|><|image_pad|><|vision_end|>")
    processor = transformers.Qwen2_5_VLProcessor(images, tokenizer, videos, chat_template=template)
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
        text_config={
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
        },
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
    )
    model = transformers.Qwen2_5_VLForConditionalGeneration(config)
    return saved(model, processor, folder, seed=5, banned=unprintable())
