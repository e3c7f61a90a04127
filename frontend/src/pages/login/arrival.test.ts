// @vitest-environment jsdom
import { afterEach, expect, test } from "vitest";
import { arrivalOf, takeArrival } from "./arrival";

afterEach(() => window.history.replaceState(null, "", "/"));

test("arrivalOf: a token, an invitation, a page", () => {
  expect(arrivalOf("#token=aB_-9")).toEqual({ token: "aB_-9", invite: null });
  expect(arrivalOf("#invite=xyz")).toEqual({ token: null, invite: "xyz" });
  expect(arrivalOf("#/slices")).toEqual({ token: null, invite: null });
});

test("takeArrival: the secret leaves the address", () => {
  window.history.replaceState(null, "", "/#token=secret");
  expect(takeArrival().token).toBe("secret");
  expect(window.location.href).not.toContain("secret");
});

test("takeArrival: the address of a page stays", () => {
  window.history.replaceState(null, "", "/#/map");
  takeArrival();
  expect(window.location.hash).toBe("#/map");
});
