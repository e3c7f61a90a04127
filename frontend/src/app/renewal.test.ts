import { describe, expect, it } from "vitest";
import { renewal } from "./renewal";

const told = { version: 3, mark: "a", tables: "t" };

describe("renewal", () => {
  it("asks for nothing where nothing changed, or this page did it", () => {
    expect(renewal(null, told, false)).toBe("nothing");
    expect(renewal(told, told, false)).toBe("nothing");
    expect(renewal(told, { ...told, version: 4, mark: "b" }, true)).toBe("nothing");
  });

  it("asks again for what others did, also together with this page", () => {
    expect(renewal(told, { ...told, version: 4, mark: "b" }, false)).toBe("some");
    expect(renewal(told, { ...told, version: 5, mark: "b" }, true)).toBe("some");
  });

  it("asks for everything when labels were applied", () => {
    expect(renewal(told, { version: 4, mark: "b", tables: "u" }, true)).toBe("all");
  });
});
