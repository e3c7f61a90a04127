"""Tiny diffusion pipelines with random weights, in the format that `save_pretrained` of diffusers writes."""

import functools
import warnings
from pathlib import Path

from tokenizers import pre_tokenizers

from weakspot.models.torch.runtime import declare_torchvision_operators

declare_torchvision_operators()

DIMENSION = 16
LONGEST = 77
N_TOKENS = 514
ENDS = {"bos_token_id": 512, "eos_token_id": 513, "pad_token_id": 513}
LAYER = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}


def _made(save):
    """Let a function write random weights from a fixed seed, without the warnings and progress bars of the libraries."""

    @functools.wraps(save)
    def made(folder, **options):
        import torch
        from transformers.utils import logging

        logging.disable_progress_bar()
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")
            torch.manual_seed(options.pop("seed", 0))
            save(folder, **options)
        return folder

    return made


def _tokenizer():
    from transformers import CLIPTokenizer

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    named = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(
        vocab={name: number for number, name in enumerate(named)},
        merges=[],
        model_max_length=LONGEST,
    )


def _text_config(**changes):
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        vocab_size=N_TOKENS,
        max_position_embeddings=LONGEST,
        **(LAYER | ENDS | {"projection_dim": DIMENSION} | changes),
    )


def _vision_config():
    from transformers import CLIPVisionConfig

    return CLIPVisionConfig(**LAYER, projection_dim=DIMENSION, image_size=16, patch_size=8)


def _text_encoder(**changes):
    from transformers import CLIPTextModel

    return CLIPTextModel(_text_config(**changes)).eval()


def _image_processor():
    from transformers import CLIPImageProcessorPil

    return CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})


def _unet(**changes):
    from diffusers import UNet2DConditionModel

    sizes = {
        "sample_size": 8,
        "in_channels": 4,
        "out_channels": 4,
        "block_out_channels": (8, 16),
        "layers_per_block": 1,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 16,
        "attention_head_dim": 4,
        "norm_num_groups": 4,
    }
    return UNet2DConditionModel(**(sizes | changes)).eval()


def _vae(sample_size=16):
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=sample_size,
    ).eval()


def _scheduler(kind="DDIMScheduler", **options):
    import diffusers

    if kind in ("DDIMScheduler", "PNDMScheduler"):
        options |= {"steps_offset": 1}
    if kind == "DDIMScheduler":
        options |= {"clip_sample": False}
    return getattr(diffusers, kind)(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", **options
    )


def safety_checker(*, flags):
    """Return a real safety checker that flags every image, or none."""
    from diffusers.pipelines.stable_diffusion import StableDiffusionSafetyChecker
    from transformers import CLIPConfig

    made = StableDiffusionSafetyChecker(
        CLIPConfig(vision_config=_vision_config().to_dict(), projection_dim=DIMENSION)
    ).eval()
    made.concept_embeds_weights.data.fill_(-2.0 if flags else 2.0)
    made.special_care_embeds_weights.data.fill_(2.0)
    return made


@_made
def save_stable_diffusion(
    folder: Path,
    *,
    checker=None,
    scheduler="DDIMScheduler",
    is_nan=False,
    written="StableDiffusionPipeline",
) -> None:
    """Write a Stable Diffusion 1.x pipeline, or one of its kin; `checker` is None, "flags" or "passes"."""
    import diffusers

    vae = _vae()
    if is_nan:
        vae.decoder.conv_out.bias.data[0] = float("nan")
    changes = {"time_cond_proj_dim": 8} if scheduler == "LCMScheduler" else {}
    changes["in_channels"] = {
        "StableDiffusionInpaintPipeline": 9,
        "StableDiffusionInstructPix2PixPipeline": 8,
    }.get(written, 4)
    getattr(diffusers, written)(
        vae=vae,
        text_encoder=_text_encoder(),
        tokenizer=_tokenizer(),
        unet=_unet(**changes),
        scheduler=_scheduler(scheduler),
        safety_checker=None if checker is None else safety_checker(flags=checker == "flags"),
        feature_extractor=None if checker is None else _image_processor(),
        requires_safety_checker=False,
    ).save_pretrained(folder)


@_made
def save_stable_diffusion_xl(folder: Path) -> None:
    """Write a Stable Diffusion XL pipeline of the turbo kind."""
    from diffusers import StableDiffusionXLPipeline
    from transformers import CLIPTextModelWithProjection

    unet = _unet(
        addition_embed_type="text_time",
        addition_time_embed_dim=4,
        transformer_layers_per_block=(1, 1),
        projection_class_embeddings_input_dim=6 * 4 + DIMENSION,
        cross_attention_dim=32,
    )
    StableDiffusionXLPipeline(
        vae=_vae(),
        text_encoder=_text_encoder(),
        text_encoder_2=CLIPTextModelWithProjection(_text_config()).eval(),
        tokenizer=_tokenizer(),
        tokenizer_2=_tokenizer(),
        unet=unet,
        scheduler=_scheduler("EulerAncestralDiscreteScheduler", timestep_spacing="trailing"),
    ).save_pretrained(folder)


@_made
def save_flux(folder: Path, *, written="FluxPipeline") -> None:
    """Write a FLUX pipeline, which is built on a transformer and reads words by CLIP and by T5, or one of its kin."""
    import diffusers
    from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxTransformer2DModel
    from transformers import T5Config, T5EncoderModel, T5Tokenizer

    pieces = [
        ("<pad>", 0.0),
        ("</s>", 0.0),
        ("<unk>", 0.0),
        ("▁", -2.0),
        *((letter, -3.0) for letter in "abcdefghijklmnopqrstuvwxyz"),
    ]
    blocks = {
        "block_out_channels": (8,),
        "down_block_types": ("DownEncoderBlock2D",),
        "up_block_types": ("UpDecoderBlock2D",),
    }
    getattr(diffusers, written)(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=AutoencoderKL(
            **blocks, latent_channels=1, norm_num_groups=4, sample_size=16, shift_factor=0.1
        ).eval(),
        text_encoder=_text_encoder(),
        tokenizer=_tokenizer(),
        text_encoder_2=T5EncoderModel(
            T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
        ).eval(),
        tokenizer_2=T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=64),
        transformer=FluxTransformer2DModel(
            # Fill kinds are given the image without what is masked, and the mask, beside the noise.
            in_channels=12 if written == "FluxFillPipeline" else 4,
            out_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=16,
            pooled_projection_dim=16,
            axes_dims_rope=(4, 4, 8),
        ).eval(),
    ).save_pretrained(folder)


@_made
def save_clip(folder: Path, *, processor=True) -> None:
    """Write a whole CLIP model with its tokenizer, as an embedder and as the text tower of a decoder."""
    from transformers import CLIPConfig, CLIPModel

    config = CLIPConfig(
        text_config=_text_config().to_dict(),
        vision_config=_vision_config().to_dict(),
        projection_dim=DIMENSION,
    )
    CLIPModel(config).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    if processor:
        _image_processor().save_pretrained(folder)
    return folder


def _unclip_parts():
    from diffusers.pipelines.stable_diffusion.stable_unclip_image_normalizer import (
        StableUnCLIPImageNormalizer,
    )

    normalizer = StableUnCLIPImageNormalizer(embedding_dim=DIMENSION)
    normalizer.mean.data.fill_(0.1)
    normalizer.std.data.fill_(0.5)
    return {
        "image_normalizer": normalizer,
        "image_noising_scheduler": _scheduler("DDPMScheduler"),
        "tokenizer": _tokenizer(),
        "text_encoder": _text_encoder(),
        "unet": _unet(
            class_embed_type="projection", projection_class_embeddings_input_dim=2 * DIMENSION
        ),
        "scheduler": _scheduler(),
        "vae": _vae(),
    }


@_made
def save_unclip_from_images(folder: Path) -> None:
    """Write a Stable unCLIP pipeline whose embeddings come from an image encoder."""
    from diffusers import StableUnCLIPImg2ImgPipeline
    from transformers import CLIPVisionModelWithProjection

    encoder = CLIPVisionModelWithProjection(_vision_config()).eval()
    StableUnCLIPImg2ImgPipeline(
        feature_extractor=_image_processor(), image_encoder=encoder, **_unclip_parts()
    ).save_pretrained(folder)


@_made
def save_unclip_from_words(folder: Path) -> None:
    """Write a Stable unCLIP pipeline that has a text tower and a prior."""
    from diffusers import PriorTransformer, StableUnCLIPPipeline
    from transformers import CLIPTextModelWithProjection

    prior = PriorTransformer(
        num_attention_heads=2, attention_head_dim=8, embedding_dim=DIMENSION, num_layers=1
    )
    StableUnCLIPPipeline(
        prior_tokenizer=_tokenizer(),
        prior_text_encoder=CLIPTextModelWithProjection(_text_config()).eval(),
        prior=prior.eval(),
        prior_scheduler=_scheduler("DDPMScheduler"),
        **_unclip_parts(),
    ).save_pretrained(folder)


@_made
def save_kandinsky(folder: Path) -> None:
    """Write the decoder of Kandinsky 2.2."""
    from diffusers import KandinskyV22Pipeline, VQModel

    unet = _unet(
        out_channels=8,
        addition_embed_type="image",
        down_block_types=("ResnetDownsampleBlock2D", "SimpleCrossAttnDownBlock2D"),
        up_block_types=("SimpleCrossAttnUpBlock2D", "ResnetUpsampleBlock2D"),
        mid_block_type="UNetMidBlock2DSimpleCrossAttn",
        encoder_hid_dim=DIMENSION,
        encoder_hid_dim_type="image_proj",
        resnet_time_scale_shift="scale_shift",
        attention_head_dim=4,
    )
    movq = VQModel(
        block_out_channels=(32, 32),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        norm_num_groups=4,
        norm_type="spatial",
        num_vq_embeddings=12,
        vq_embed_dim=4,
    )
    KandinskyV22Pipeline(unet=unet, scheduler=_scheduler(), movq=movq.eval()).save_pretrained(
        folder
    )


@_made
def save_kandinsky_prior(folder: Path) -> None:
    """Write the parts of Kandinsky's prior that a decoder needs: both towers of its CLIP, in folders of their own."""
    from transformers import CLIPTextModelWithProjection, CLIPVisionModelWithProjection

    CLIPTextModelWithProjection(_text_config()).save_pretrained(folder / "text_encoder")
    CLIPVisionModelWithProjection(_vision_config()).save_pretrained(folder / "image_encoder")
    _tokenizer().save_pretrained(folder / "tokenizer")
    _image_processor().save_pretrained(folder / "image_processor")
