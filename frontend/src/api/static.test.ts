// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test } from "vitest";
import { answerKey, isStatic, staticFetch, staticImage } from "./static";

beforeEach(() => {
  window.weakspotStatic = { answers: { "/api/runs": { runs: [] }, 'POST /api/classes/phrase {"offset":0,"phrase":"green"}': { score: 1 } }, images: [3], notes: [] };
});
afterEach(() => delete window.weakspotStatic);

test("a key is the path below any root with the query by name, not encoded", () => {
  expect(answerKey("GET", new URL("file:///out/api/slices/a%20b?z=%26*~&a=1&a=0"))).toBe("/api/slices/a b?a=1&a=0&z=&*~");
  expect(answerKey("GET", new URL("https://host/sub/path/api/runs"))).toBe("/api/runs");
});

test("the key of a question with a body does not depend on the order of its fields", () => {
  const address = new URL("file:///out/api/classes/phrase");
  expect(answerKey("POST", address, '{"b":1,"a":"x"}')).toBe('POST /api/classes/phrase {"a":"x","b":1}');
});

test("what was exported is answered, and what was not is said", async () => {
  expect(isStatic()).toBe(true);
  const found = await staticFetch(new Request("https://host/api/runs"));
  expect(await found.json()).toEqual({ runs: [] });
  const asked = await staticFetch(new Request("https://host/api/classes/phrase", { method: "POST", body: '{"phrase":"green","offset":0}' }));
  expect(await asked.json()).toEqual({ score: 1 });
  const missing = await staticFetch(new Request("https://host/api/overview"));
  expect(missing.status).toBe(404);
  expect(((await missing.json()) as { fix: string }).fix).toContain("weakspot serve");
});

test("an image that was left out says so without asking for a file", () => {
  expect(staticImage(3)).toBe("images/3.jpg");
  expect(staticImage(4)).toMatch(/^data:image\/svg/);
});
