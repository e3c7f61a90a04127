import { expect, test } from "vitest";
import { bytes, codes, floats, integers } from "./packed";

test("packed columns: reads the numbers that the server sends", () => {
  expect([...integers("AQAAAAIAAAA=")]).toEqual([1, 2]);
  expect([...floats("AACAPw==")]).toEqual([1]);
  expect([...codes("AQD//w==")]).toEqual([1, 65535]);
  expect([...bytes("AQD/")]).toEqual([1, 0, 255]);
});
