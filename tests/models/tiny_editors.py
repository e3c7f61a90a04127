"""Tiny pipelines that edit images, with random weights, in the format that `save_pretrained` of diffusers writes."""

from pathlib import Path

from tests.models.tiny_pipelines import LAYER, _made, _scheduler, _text_encoder, _tokenizer
from tests.models.tiny_pipelines import _unet as unet
from tests.models.tiny_pipelines import _vae as vae
from tests.models.tiny_speakers import byte_tokenizer
from tests.models.tiny_vision_language import qwen_vl_parts

SPOKEN = "{% for m in messages %}<s>{{ m.role }}:{{ m.content }}\n{% endfor %}Assistant:"


def _loud(network):
    """Return a network whose weights are large enough that words decide about pixels."""
    for weights in network.parameters():
        if weights.ndim > 1:
            weights.data.normal_(std=0.5)
    return network.eval()


@_made
def save_qwen_image(folder: Path, *, written="QwenImageEditPipeline") -> None:
    """Write a Qwen-Image pipeline that edits; it encodes every image at a million pixels, so its autoencoder shrinks them much."""
    import diffusers

    text_encoder, processor = qwen_vl_parts()
    depth = 5
    getattr(diffusers, written)(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=diffusers.AutoencoderKLQwenImage(
            base_dim=2,
            z_dim=2,
            dim_mult=[1] * depth,
            num_res_blocks=0,
            temperal_downsample=[False] * (depth - 1),
            latents_mean=[0.0] * 2,
            latents_std=[1.0] * 2,
        ).eval(),
        text_encoder=text_encoder.eval(),
        tokenizer=processor.tokenizer,
        processor=processor,
        transformer=_loud(
            diffusers.QwenImageTransformer2DModel(
                patch_size=2,
                in_channels=8,
                out_channels=2,
                num_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=16,
                axes_dims_rope=(8, 4, 4),
            )
        ),
    ).save_pretrained(folder)


@_made
def save_flux2(folder: Path) -> None:
    """Write a FLUX.2 pipeline of the small kind, which reads words by a language model."""
    import diffusers
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = byte_tokenizer(chat=SPOKEN)
    config = Qwen3Config(
        **LAYER,
        num_key_value_heads=2,
        head_dim=8,
        vocab_size=len(tokenizer),
        max_position_embeddings=512,
    )
    diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=diffusers.AutoencoderKLFlux2(
            sample_size=32,
            down_block_types=("DownEncoderBlock2D",),
            up_block_types=("UpDecoderBlock2D",),
            block_out_channels=(4,),
            layers_per_block=1,
            latent_channels=1,
            norm_num_groups=1,
            use_quant_conv=False,
            use_post_quant_conv=False,
        ).eval(),
        text_encoder=Qwen3ForCausalLM(config).eval(),
        tokenizer=tokenizer,
        transformer=diffusers.Flux2Transformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=16,
            axes_dims_rope=[4, 4, 4, 4],
            guidance_embeds=False,
        ).eval(),
    ).save_pretrained(folder)


def _controlnet():
    from diffusers import ControlNetModel

    made = ControlNetModel.from_unet(unet(), conditioning_embedding_out_channels=(4, 4))
    # Untrained, the last layers are zero, and nothing that a ControlNet is shown would matter.
    return _loud(made)


@_made
def save_controlnet(folder: Path) -> None:
    """Write a ControlNet alone, for the tiny Stable Diffusion pipeline."""
    _controlnet().save_pretrained(folder)


@_made
def save_controlled(folder: Path) -> None:
    """Write a Stable Diffusion pipeline with a ControlNet."""
    from diffusers import StableDiffusionControlNetPipeline

    StableDiffusionControlNetPipeline(
        vae=vae(),
        text_encoder=_text_encoder(),
        tokenizer=_tokenizer(),
        unet=unet(),
        controlnet=_controlnet(),
        scheduler=_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)


@_made
def save_pixels(folder: Path) -> None:
    """Write a pipeline that takes no words at all."""
    from diffusers import DDPMPipeline, UNet2DModel

    DDPMPipeline(
        unet=UNet2DModel(
            sample_size=8,
            block_out_channels=(8, 8),
            layers_per_block=1,
            norm_num_groups=4,
            down_block_types=("DownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "UpBlock2D"),
        ),
        scheduler=_scheduler("DDPMScheduler"),
    ).save_pretrained(folder)
