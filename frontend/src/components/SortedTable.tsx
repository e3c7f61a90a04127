import { useMemo, useState, type ReactNode } from "react";

export type Column<Row> = {
  key: string;
  title: string;
  cell: (row: Row) => ReactNode;
  order?: (row: Row) => number | string | null;
  isNumber?: boolean;
  hint?: string;
};
type Props<Row> = {
  rows: Row[];
  columns: Column<Row>[];
  rowKey: (row: Row) => string;
  caption: string;
  startBy?: string;
  startDown?: boolean;
  rowClass?: (row: Row) => string;
  className?: string;
};

type Order = { key: string; down: boolean };

/** Return rows by a column; what has no value there comes last either way, and equal rows stay in the order they came in. */
export function sortedRows<Row>(rows: Row[], order: ((row: Row) => number | string | null) | undefined, down: boolean): Row[] {
  if (!order) return rows;
  const sign = down ? -1 : 1;
  const keyed = rows.map((row) => ({ row, value: order(row) }));
  keyed.sort(({ value: left }, { value: right }) => {
    const [isLeftMissing, isRightMissing] = [isMissing(left), isMissing(right)];
    if (isLeftMissing || isRightMissing) return Number(isLeftMissing) - Number(isRightMissing);
    return sign * (typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right)));
  });
  return keyed.map(({ row }) => row);
}

function isMissing(value: number | string | null): boolean {
  return value === null || (typeof value === "number" && Number.isNaN(value));
}

/** A table that is sorted by the heading that was last pressed; pressing it a third time brings back the first order. */
export function SortedTable<Row>({ rows, columns, rowKey, caption, startBy, startDown = false, rowClass, className = "" }: Props<Row>) {
  const start: Order = { key: startBy ?? "", down: startDown };
  const [by, setBy] = useState<Order>(start);
  const sorted = useMemo(() => sortedRows(rows, columns.find((column) => column.key === by.key)?.order, by.down), [rows, columns, by]);
  const state = (key: string) => (by.key !== key ? "none" : by.down ? "descending" : "ascending");
  const press = (column: Column<Row>) => {
    const first = Boolean(column.isNumber);
    if (by.key !== column.key) setBy({ key: column.key, down: first });
    else if (by.down === first) setBy({ key: column.key, down: !first });
    else setBy(start.key === column.key ? { key: column.key, down: first } : start);
  };
  return (
    <div className={`table-box ${className}`} tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption className="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={`col-${column.key} ${column.isNumber ? "number" : ""}`} aria-sort={column.order ? state(column.key) : undefined} title={column.hint}>
                {column.order ? (
                  <button type="button" className="sort" onClick={() => press(column)}>
                    {column.title} <span aria-hidden="true">{by.key === column.key ? (by.down ? "▾" : "▴") : "▵"}</span>
                  </button>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={rowKey(row)} className={rowClass?.(row)}>
              {columns.map((column) => <td key={column.key} className={`col-${column.key} ${column.isNumber ? "number" : ""}`}>{column.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
