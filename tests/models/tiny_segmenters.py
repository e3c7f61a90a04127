"""Tiny segmenters with random weights in their real formats."""

from functools import partial
from pathlib import Path

from tests.models.tiny_speakers import _word_tokenizer

from weakspot.models.transformers.images import TransformersSegmenter

SIDE = 64


def _saved(model, folder: Path) -> Path:
    """Save a model whose random weights are large enough for its masks to differ from pixel to pixel."""
    import torch

    with torch.no_grad():
        for one in model.parameters():
            one.add_(0.3 * torch.randn_like(one))
    model.save_pretrained(folder)
    return folder


def save_clipseg(folder: Path, *, seed: int = 0) -> Path:
    import torch
    from transformers import (
        CLIPSegConfig,
        CLIPSegForImageSegmentation,
        CLIPSegProcessor,
        ViTImageProcessor,
    )

    torch.manual_seed(seed)
    layer = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
    }
    config = CLIPSegConfig(
        text_config={**layer, "vocab_size": 64, "eos_token_id": 3, "max_position_embeddings": 16},
        vision_config={**layer, "image_size": SIDE, "patch_size": 8},
        projection_dim=16,
        reduce_dim=8,
        extract_layers=[0, 1, 2],
        decoder_num_attention_heads=2,
        decoder_intermediate_size=16,
        conditional_layer=0,
    )
    _saved(CLIPSegForImageSegmentation(config), folder)
    processor = ViTImageProcessor(size={"height": SIDE, "width": SIDE})
    CLIPSegProcessor(image_processor=processor, tokenizer=_word_tokenizer()).save_pretrained(folder)
    return folder


def save_mask2former(folder: Path, *, seed: int = 0) -> Path:
    import torch
    from transformers import (
        Mask2FormerConfig,
        Mask2FormerForUniversalSegmentation,
        Mask2FormerImageProcessor,
        SwinConfig,
    )

    torch.manual_seed(seed)
    backbone = SwinConfig(
        image_size=SIDE,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 1, 1],
        window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = Mask2FormerConfig(
        backbone_config=backbone,
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=16,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=2,
        dim_feedforward=16,
        num_queries=4,
        id2label={0: "disc, circle", 1: "star"},
        label2id={"disc, circle": 0, "star": 1},
    )
    _saved(Mask2FormerForUniversalSegmentation(config), folder)
    Mask2FormerImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    return folder


def save_sam(folder: Path, *, seed: int = 0) -> Path:
    import torch
    from transformers import SamConfig, SamImageProcessor, SamModel, SamProcessor

    torch.manual_seed(seed)
    config = SamConfig(
        vision_config={
            "hidden_size": 16,
            "output_channels": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 64,
            "patch_size": 8,
            "mlp_dim": 16,
            "window_size": 4,
            "global_attn_indexes": [0],
            "num_pos_feats": 4,
        },
        prompt_encoder_config={
            "hidden_size": 8,
            "image_size": 64,
            "patch_size": 8,
            "mask_input_channels": 4,
        },
        mask_decoder_config={
            "hidden_size": 8,
            "mlp_dim": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "iou_head_hidden_dim": 8,
        },
    )
    _saved(SamModel(config), folder)
    images = SamImageProcessor(
        size={"longest_edge": 64},
        pad_size={"height": 64, "width": 64},
        mask_size={"longest_edge": 16},
    )
    SamProcessor(image_processor=images).save_pretrained(folder)
    return folder


def save_sam2(folder: Path, *, seed: int = 0) -> Path:
    import torch
    from transformers import Sam2Config, Sam2ImageProcessor, Sam2Model, Sam2Processor

    torch.manual_seed(seed)
    backbone = {
        "model_type": "sam2_hiera_det_model",
        "hidden_size": 8,
        "image_size": [SIDE, SIDE],
        "window_positional_embedding_background_size": [4, 4],
        "blocks_per_stage": [1, 1, 2, 1],
        "embed_dim_per_stage": [8, 16, 32, 64],
        "num_attention_heads_per_stage": [1, 1, 2, 2],
        "window_size_per_stage": [4, 2, 4, 2],
        "global_attention_blocks": [3],
    }
    config = Sam2Config(
        vision_config={
            "backbone_config": backbone,
            "backbone_channel_list": [64, 32, 16, 8],
            "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
            "fpn_hidden_size": 16,
        },
        prompt_encoder_config={
            "hidden_size": 16,
            "image_size": SIDE,
            "patch_size": 16,
            "mask_input_channels": 4,
        },
        mask_decoder_config={
            "hidden_size": 16,
            "mlp_dim": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "iou_head_hidden_dim": 8,
        },
    )
    _saved(Sam2Model(config), folder)
    images = Sam2ImageProcessor(
        size={"height": SIDE, "width": SIDE}, mask_size={"height": 16, "width": 16}
    )
    Sam2Processor(image_processor=images).save_pretrained(folder)
    return folder


def _clipseg(folder, _stack):
    return partial(TransformersSegmenter, model=save_clipseg(folder), device="cpu")


BUILDERS = {("segmenters", "transformers"): _clipseg}
