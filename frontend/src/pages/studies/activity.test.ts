import { describe, expect, it } from "vitest";
import { ActivityMeter, duration } from "./activity";

describe("ActivityMeter", () => {
  it("counts time after use", () => {
    const meter = new ActivityMeter(0);
    meter.use(0);
    meter.tick(15, true);
    expect(meter.take()).toBe(15);
    expect(meter.take()).toBe(0);
  });

  it("stops a minute after the last use", () => {
    const meter = new ActivityMeter(0);
    meter.tick(50, true);
    meter.tick(100, true);
    meter.tick(500, true);
    expect(meter.take()).toBe(60);
  });

  it("does not count time in which the page was not seen", () => {
    const meter = new ActivityMeter(0);
    meter.tick(10, true);
    meter.tick(40, false);
    meter.use(45);
    expect(meter.take()).toBe(15);
  });

  it("counts again what could not be told", () => {
    const meter = new ActivityMeter(0);
    meter.tick(10, true);
    meter.giveBack(meter.take());
    meter.use(12);
    expect(meter.take()).toBe(12);
  });
});

describe("duration", () => {
  it("says minutes only when there are some", () => {
    expect(duration(59.9)).toBe("59 s");
    expect(duration(754)).toBe("12 min 34 s");
  });
});
