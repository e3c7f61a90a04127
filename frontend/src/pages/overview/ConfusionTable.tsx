import { useMemo } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { Card } from "../../components/Card";
import { counted, percent } from "../../components/figures";
import { cellsOf, type Cell } from "./confusion";

const FEW = 8;

/** The confusion matrix: counts, coloured by the share of each true class. */
export function ConfusionTable({ confusion }: { confusion: Schemas["ConfusionView"] }) {
  const { titles, has_others: hasOthers } = confusion;
  const cells = useMemo(() => cellsOf(confusion.counts, hasOthers), [confusion.counts, hasOthers]);
  const caption = `Confusion matrix on ${confusion.measured_on} (${counted(confusion.n_samples)} samples)`;
  return (
    <Card title="Confusion matrix" className="confusion-card">
      <p className="quiet">
        Rows are true classes, columns are predictions; all of {confusion.measured_on}, {counted(confusion.n_samples)} samples.
        {hasOthers && ` The ${titles.length - 1} most confused of ${counted(confusion.n_classes)} classes are shown one by one.`}
      </p>
      <p className="legend"><span className="right"><i />right</span><span className="wrong"><i />wrong; stronger: a larger share of the true class</span></p>
      <div className="table-box" tabIndex={0} role="region" aria-label={caption}>
        <table className={`confusion ${titles.length > FEW ? "is-large" : ""}`}>
          <caption className="unseen">{caption}</caption>
          <thead>
            <tr>
              <th scope="col">true ↓ predicted →</th>
              {titles.map((title, place) => <th key={place} scope="col" title={title}><span>{title}</span></th>)}
            </tr>
          </thead>
          <tbody>
            {cells.map((line, place) => (
              <tr key={place}>
                <th scope="row" title={titles[place]}>{titles[place]}</th>
                {line.map((cell, column) => (
                  <td key={column} className="number" style={shade(cell)} title={`${titles[place]} predicted as ${titles[column]}: ${counted(cell.count)}, ${percent(cell.share)}`}>
                    {cell.count > 0 ? <Count place={place} column={column} confusion={confusion} count={cell.count} /> : <span className="quiet">0</span>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** How many, as a way to their images: those of the discovery half, which people may look at. */
function Count({ place, column, confusion, count }: { place: number; column: number; confusion: Schemas["ConfusionView"]; count: number }) {
  const { titles, has_others: hasOthers } = confusion;
  const isOthers = (one: number) => hasOthers && one === titles.length - 1;
  if (isStatic() || isOthers(place) || isOthers(column)) return <>{counted(count)}</>;
  const query = new URLSearchParams({ label: titles[place] ?? "", answer: titles[column] ?? "", part: "discovery half" });
  return <Link href={`/images?${query.toString()}`} aria-label={`${counted(count)} samples of ${titles[place]} predicted as ${titles[column]}: look at them`}>{counted(count)}</Link>;
}

function shade(cell: Cell): { background?: string } {
  if (cell.kind === "none") return {};
  return { background: `color-mix(in srgb, var(--${cell.kind}) ${cell.strength}%, var(--surface))` };
}
