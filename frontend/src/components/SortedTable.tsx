import { useMemo, useState, type ReactNode } from "react";

export type Column<Row> = {
  key: string;
  title: string;
  cell: (row: Row) => ReactNode;
  order?: (row: Row) => number | string;
  isNumber?: boolean;
};
type Props<Row> = { rows: Row[]; columns: Column<Row>[]; rowKey: (row: Row) => string; caption: string; startBy?: string; startDown?: boolean };

/** A table that is sorted by the heading that was last pressed. */
export function SortedTable<Row>({ rows, columns, rowKey, caption, startBy, startDown = false }: Props<Row>) {
  const [by, setBy] = useState({ key: startBy ?? "", down: startDown });
  const sorted = useMemo(() => {
    const order = columns.find((column) => column.key === by.key)?.order;
    if (!order) return rows;
    const sign = by.down ? -1 : 1;
    return [...rows].sort((one, two) => {
      const [left, right] = [order(one), order(two)];
      return sign * (typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right)));
    });
  }, [rows, columns, by]);
  const state = (key: string) => (by.key !== key ? "none" : by.down ? "descending" : "ascending");
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption className="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={column.isNumber ? "number" : undefined} aria-sort={column.order ? state(column.key) : undefined}>
                {column.order ? (
                  <button type="button" className="sort" onClick={() => setBy({ key: column.key, down: by.key === column.key ? !by.down : Boolean(column.isNumber) })}>
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
            <tr key={rowKey(row)}>
              {columns.map((column) => <td key={column.key} className={column.isNumber ? "number" : undefined}>{column.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
