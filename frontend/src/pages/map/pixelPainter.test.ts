import { describe, expect, it } from "vitest";
import { isImitated } from "./painter";
import { mixed, stampOf } from "./pixelPainter";

describe("pixel painter", () => {
  it("covers a square with small points and a disc with large ones", () => {
    expect(stampOf(1).cover.length).toBe(1);
    expect(stampOf(3).cover.length).toBe(9);
    const disc = stampOf(9);
    expect(disc.cover.length).toBeLessThan(81);
    expect(disc.cover.length).toBeGreaterThan(50);
    expect(disc.cover[Math.floor(disc.cover.length / 2)]).toBe(256);
    const even = stampOf(8);
    expect(even.across.reduce((sum, value) => sum + value + 0.5, 0)).toBeCloseTo(0, 8);
  });

  it("mixes every channel by its own", () => {
    expect(mixed(0xff000000, 0xff4080ff, 256)).toBe(0xff4080ff);
    expect(mixed(0xff102030, 0xff4080ff, 0)).toBe(0xff102030);
    expect(mixed(0xff000000, 0xffffffff, 128)).toBe(0xff7f7f7f);
    expect(mixed(0xffffffff, 0xff000000, 64)).toBe(0xffbfbfbf);
  });

  it("knows imitated graphics cards by their names", () => {
    expect(isImitated("ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader driver)")).toBe(true);
    expect(isImitated("llvmpipe (LLVM 15.0.6, 256 bits)")).toBe(true);
    expect(isImitated("ANGLE (NVIDIA, NVIDIA GeForce RTX 3060, OpenGL 4.5)")).toBe(false);
  });
});
