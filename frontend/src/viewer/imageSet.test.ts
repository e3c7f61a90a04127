// @vitest-environment jsdom
import { afterEach, describe, expect, it } from "vitest";
import { asked, depth, following, imageQuery, openSample, showInstead, type Page } from "./imageSet";

afterEach(() => window.history.replaceState(null, "", "/"));

describe("imageQuery", () => {
  it("keeps what says which images are meant, in one order, and nothing else", () => {
    const one = imageQuery("size=200&values=green&order=loss&attributes=colour&label=apple&tables=t&words=");
    expect(one.toString()).toBe("label=apple&order=loss&attributes=colour&values=green");
    expect(imageQuery("attributes=colour&values=green&label=apple&order=loss").toString()).toBe(one.toString());
    expect(asked(one)).toEqual({ label: "apple", order: "loss", attributes: ["colour"], values: ["green"] });
  });
});

describe("openSample", () => {
  it("puts image and set into the address, and counts the steps back to the page", () => {
    window.history.replaceState(null, "", "/#/images?label=apple");
    expect(depth()).toBe(0);
    openSample(7, "t", { label: "apple" });
    expect(window.location.hash).toBe("#/image/7?label=apple&tables=t");
    expect(depth()).toBe(1);
    showInstead("0f4b", imageQuery("label=apple"));
    expect(window.location.hash).toBe("#/image/0f4b?label=apple");
    expect(depth()).toBe(1);
    openSample(9, "t", { like: "0f4b" });
    expect(depth()).toBe(2);
  });
});

describe("following", () => {
  const page = (...ids: string[]) => ({ offset: 60, images: ids.map((id) => ({ sample_id: id })) as Page["images"] });

  it("goes on from where the image is now", () => {
    expect(following(page("a", "b", "c"), { id: "b", place: 61 }, 1)).toBe(62);
    expect(following(page("a", "b", "c"), { id: "b", place: 61 }, -1)).toBe(60);
    expect(following(page("new", "a", "b", "c"), { id: "b", place: 61 }, 1)).toBe(63);
  });

  it("leaves out none when the image has left the filter", () => {
    expect(following(page("a", "c"), { id: "b", place: 61 }, 1)).toBe(61);
    expect(following(page("a", "c"), { id: "b", place: 61 }, -1)).toBe(60);
  });
});
