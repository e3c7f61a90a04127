import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { counted, percent, range } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { SortedTable, type Column } from "../../components/SortedTable";

type Line = Schemas["ClassAccuracy"];

const FIRST = 30;
const COLUMNS: Column<Line>[] = [
  { key: "title", title: "Class", cell: (line) => <Link href={`/classes/${encodeURIComponent(line.class_name)}`}>{line.class_name}</Link>, order: (line) => line.class_name },
  { key: "right", title: "Accuracy", cell: (line) => percent(line.right.value), order: (line) => line.right.value, isNumber: true },
  { key: "interval", title: "95 % interval", cell: (line) => <>{range(line.right.interval)}<IntervalBar rate={line.right.value} interval={line.right.interval} label={line.class_name} /></> },
  { key: "total", title: "Samples", cell: (line) => counted(line.right.total), order: (line) => line.right.total, isNumber: true },
];

/** How often the classifier is right on each class, lowest first. */
export function ClassAccuracy({ classes, isSeveral }: { classes: Line[]; isSeveral: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? classes : classes.slice(0, FIRST);
  return (
    <Card title="Accuracy by class" className="accuracy">
      {isSeveral && <p className="quiet">A sample can have several labels; “no x” stands for samples without the label x.</p>}
      <SortedTable rows={shown} columns={COLUMNS} rowKey={(line) => line.class_name} caption="Every class with its accuracy" startBy="right" />
      {classes.length > FIRST && (
        <p><Button kind="quiet" onClick={() => setWhole(!isWhole)}>{isWhole ? `Only the lowest ${FIRST}` : `All ${counted(classes.length)} classes`}</Button></p>
      )}
    </Card>
  );
}
