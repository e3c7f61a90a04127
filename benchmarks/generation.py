"""What the loop around an image generator costs: GeneratorService.generate against the generator alone, in the same run.

    python benchmarks/generation.py --images 24 --repeats 5

The first generator is a Stable Diffusion pipeline with random weights of 256 x 256 pixels, built here in the real format
and read by weakspot's own generator for diffusers; the loop may cost it less than 5 %. The second is the planted renderer, which is
far faster than any model, so that the loop shows. Both ways are taken in turn with the same requests, because other work on the
machine changes the speed from second to second. The last column compares processor time, which is the most that the loop can cost
where the generator leaves no processor idle. Every image goes through the quality check, is encoded, hashed, written and flushed
to the disk.
"""

import argparse
import json
import statistics
import tempfile
import time
import warnings
from pathlib import Path

from weakspot.core.generated import GenerationRequest
from weakspot.core.registry import part_class
from weakspot.generate.quality import QualityCheck
from weakspot.generate.service import GeneratorService
from weakspot.models.torch.runtime import declare_torchvision_operators
from weakspot.store.generated_images import GeneratedImageStore

SIDE = 256
BATCH_SIZE = 8
MAX_RATIO = 1.05
MIN_MILLISECONDS = 50.0
ROW = "{:<28} {:>12} {:>12} {:>8} {:>8} {:>8} {:>11}"


def save_pipeline(folder, *, n_threads):
    """Write a small Stable Diffusion 1.x pipeline with random weights, and limit the threads of torch."""
    declare_torchvision_operators()
    import torch
    from diffusers import (
        AutoencoderKL,
        DDIMScheduler,
        StableDiffusionPipeline,
        UNet2DConditionModel,
    )
    from tokenizers import pre_tokenizers
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    torch.set_num_threads(n_threads)
    torch.manual_seed(0)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    named = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    text = CLIPTextConfig(
        vocab_size=len(named), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, projection_dim=32,
        bos_token_id=512, eos_token_id=513, pad_token_id=513,
    )  # fmt: skip
    unet = UNet2DConditionModel(
        sample_size=SIDE // 8, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8, cross_attention_dim=32,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=8,
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=(16, 16, 32, 32), down_block_types=("DownEncoderBlock2D",) * 4, norm_num_groups=8,
        up_block_types=("UpDecoderBlock2D",) * 4, latent_channels=4, sample_size=SIDE,
    )  # fmt: skip
    StableDiffusionPipeline(
        vae=vae.eval(),
        text_encoder=CLIPTextModel(text).eval(),
        tokenizer=CLIPTokenizer(
            vocab={name: number for number, name in enumerate(named)},
            merges=[],
            model_max_length=77,
        ),
        unet=unet.eval(),
        scheduler=DDIMScheduler(beta_schedule="scaled_linear", steps_offset=1, clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)


def timed(function):
    """Return seconds, and seconds of all processors."""
    started, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - started, time.process_time() - processor


def alone(generator, requests):
    """Call the generator as a service calls it, and keep nothing."""
    for start in range(0, len(requests), BATCH_SIZE):
        batch = requests[start : start + BATCH_SIZE]
        generator.generate(
            [request.prompt for request in batch], seeds=[request.seed for request in batch]
        )


def generated(generator, requests):
    """Generate the same in a service, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        service = GeneratorService(
            generator,
            GeneratedImageStore(Path(folder)),
            quality=QualityCheck(),
            batch_size=BATCH_SIZE,
        )
        service.generate(requests)
        if service.tally() != {"kept": len(requests)}:
            raise SystemExit(f"Some images were rejected: {service.tally()}.")


def compare(name, generator, *, n_images, n_repeats):
    """Return a row of the table: both in turn, the first round for warming up."""
    rounds = []
    for repeat in range(n_repeats + 1):
        requests = [
            GenerationRequest(class_name="disc", prompt="a green disc", seed=repeat * n_images + n)
            for n in range(n_images)
        ]
        pair = {
            kind: timed(lambda kind=kind, requests=requests: kind(generator, requests))
            for kind in ((alone, generated), (generated, alone))[repeat % 2]
        }
        rounds.append((*pair[alone], *pair[generated]))
    rounds = rounds[1:]
    ratios = sorted(with_loop / without for without, _, with_loop, _ in rounds)
    return {
        "generator": name,
        "alone_ms": 1e3 * statistics.median(row[0] for row in rounds) / n_images,
        "service_ms": 1e3 * statistics.median(row[2] for row in rounds) / n_images,
        "ratio": statistics.median(ratios),
        "least": ratios[0],
        "most": ratios[-1],
        "processor_ratio": statistics.median(row[3] / row[1] for row in rounds),
    }


def main():
    """Measure, print and check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    numbers = {"n_images": arguments.images, "n_repeats": arguments.repeats}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_pipeline(folder, n_threads=arguments.threads)
        diffusers = part_class("image_generators", "diffusers")(
            model=folder, steps=arguments.steps, width=SIDE, height=SIDE
        )
        rows = [compare(f"diffusers, {SIDE} x {SIDE}", diffusers, **numbers)]
    planted = part_class("image_generators", "planted")()
    rows.append(
        compare(
            "planted renderer, 64 x 64",
            planted,
            n_images=8 * arguments.images,
            n_repeats=arguments.repeats,
        )
    )
    print(json.dumps(rows))
    print(
        ROW.format("generator", "alone, ms", "service, ms", "ratio", "least", "most", "processor")
    )
    for row in rows:
        shown = [f"{row[key]:.1f}" for key in ("alone_ms", "service_ms")] + [
            f"{row[key]:.3f}" for key in ("ratio", "least", "most", "processor_ratio")
        ]
        print(ROW.format(row["generator"], *shown))
    if rows[0]["ratio"] >= MAX_RATIO or rows[0]["alone_ms"] < MIN_MILLISECONDS:
        raise SystemExit(
            f"wanted: a ratio below {MAX_RATIO} for a generator that needs {MIN_MILLISECONDS:.0f} ms an image"
        )


if __name__ == "__main__":
    main()
