// @vitest-environment jsdom
import { fireEvent, render } from "@testing-library/react";
import { expect, test } from "vitest";
import { SortedTable, sortedRows, type Column } from "./SortedTable";

type Row = { name: string; rate: number | null };
const ROWS: Row[] = [{ name: "b", rate: 0.2 }, { name: "a", rate: null }, { name: "c", rate: 0.9 }];
const COLUMNS: Column<Row>[] = [
  { key: "name", title: "Name", cell: (row) => row.name, order: (row) => row.name },
  { key: "rate", title: "Rate", cell: (row) => row.rate ?? "–", order: (row) => row.rate, isNumber: true },
];

test("sortedRows: what has no value is last either way, and equal rows keep their order", () => {
  const names = (down: boolean) => sortedRows(ROWS, (row) => row.rate, down).map((row) => row.name).join("");
  expect(names(true)).toBe("cba");
  expect(names(false)).toBe("bca");
  expect(sortedRows(ROWS, () => 1, true)).toEqual(ROWS);
  expect(sortedRows(ROWS, undefined, true)).toBe(ROWS);
});

test("SortedTable: a heading sorts, turns, and gives back the first order", () => {
  const { container } = render(<SortedTable rows={ROWS} columns={COLUMNS} rowKey={(row) => row.name} caption="Rates" rowClass={(row) => `row-${row.name}`} />);
  const order = () => [...container.querySelectorAll("tbody tr")].map((row) => row.className).join(" ");
  const heading = container.querySelector("th.number")!;
  const press = () => fireEvent.click(heading.querySelector("button")!);
  expect(order()).toBe("row-b row-a row-c");
  press();
  expect([order(), heading.getAttribute("aria-sort")]).toEqual(["row-c row-b row-a", "descending"]);
  press();
  expect([order(), heading.getAttribute("aria-sort")]).toEqual(["row-b row-c row-a", "ascending"]);
  press();
  expect([order(), heading.getAttribute("aria-sort")]).toEqual(["row-b row-a row-c", "none"]);
});
