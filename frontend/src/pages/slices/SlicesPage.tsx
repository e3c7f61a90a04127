import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { api, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { counted } from "../../components/figures";
import { Form } from "../../components/Form";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { SortedTable } from "../../components/SortedTable";
import { pickColumn, sliceColumns } from "./sliceColumns";
import { choices, chosenSlices, NO_FILTER, standingOf, type SliceFilter } from "./sliceFilters";
import { treeLines, type SliceOrder } from "./sliceTree";
import { useRun } from "./useRun";
import "./slices.css";

const STANDINGS: [SliceFilter["standing"], string][] = [
  ["findings", "Findings"],
  ["standing", "All but dismissed"],
  ["confirmed", "Confirmed"],
  ["unconfirmed", "Not confirmed"],
  ["dismissed", "Dismissed"],
  ["all", "All"],
];
const ORDERS: [SliceOrder, string][] = [
  ["both", "Severity and coverage"],
  ["severity", "Severity"],
  ["coverage", "Share of all failures"],
];
/** With more explained slices than this the page begins with the findings. */
const MANY_EXPLAINED = 10;

/** All slices of a run: what was found, how sure it is, and what people made of it. */
export function SlicesPage() {
  const { query, choose } = useRun();
  const table = useQuery({ queryKey: ["slices", query.run ?? ""], queryFn: () => unwrap(api.GET("/api/slices", { params: { query } })) });
  return (
    <>
      <PageHead title="Slices" aside={table.data && table.data.run_ids.length > 1 && <RunChoice table={table.data} onChoose={choose} />}>
        Kinds of samples on which the classifier fails more often than on the rest of their class. Rates are of samples that took no part in finding them.
      </PageHead>
      <Loaded query={table} what="the slices">{(data) => <SliceList table={data} />}</Loaded>
    </>
  );
}

function RunChoice({ table, onChoose }: { table: Schemas["SliceTable"]; onChoose: (run: string) => void }) {
  return (
    <label className="field">
      <span>Run</span>
      <select value={table.run_id} onChange={(event) => onChoose(event.target.value)}>
        {table.run_ids.map((run, place) => <option key={run} value={run}>{place ? run : `${run} (newest)`}</option>)}
      </select>
    </label>
  );
}

function SliceList({ table }: { table: Schemas["SliceTable"] }) {
  const hasMany = table.slices.filter((line) => line.kind === "explained").length > MANY_EXPLAINED;
  const [filter, setFilter] = useState<SliceFilter>({ ...NO_FILTER, standing: hasMany ? "findings" : NO_FILTER.standing });
  const [order, setOrder] = useState<SliceOrder>(table.order);
  const tree = useMemo(() => treeLines(chosenSlices(table.slices, filter), order), [table.slices, filter, order]);
  const [picked, setPicked] = useState<string[]>([]);
  const { query } = useRun();
  const columns = useMemo(() => {
    const pick = (id: string) => setPicked((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before, id].slice(-2)));
    const shown = sliceColumns(new Map(tree.map((one) => [one.line.slice_id, one.depth])));
    const hasWitnesses = tree.some(({ line }) => line.also_found.length + line.witnesses.length > 0);
    return [pickColumn(picked, pick), ...shown.filter((column) => hasWitnesses || column.key !== "witnesses")];
  }, [tree, picked]);
  const shown = useMemo(() => tree.map((one) => one.line), [tree]);
  const change = (part: Partial<SliceFilter>) => setFilter({ ...filter, ...part });
  if (!table.slices.length) {
    return (
      <p className="note">
        {table.run_id ? "This run found no slice." : "There is no run yet."} Say what you see in a <Link href="/classes">class</Link>, or start a run on the <Link href="/">overview</Link>.
      </p>
    );
  }
  return (
    <>
      <Form className="row slice-filters" role="search" aria-label="Slices" onSubmit={() => undefined}>
        <label className="field">
          <span>Show</span>
          <select value={filter.standing} onChange={(event) => change({ standing: event.target.value as SliceFilter["standing"] })}>
            {STANDINGS.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
          </select>
        </label>
        <label className="field">
          <span>Order</span>
          <select value={order} onChange={(event) => setOrder(event.target.value as SliceOrder)}>
            {ORDERS.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
          </select>
        </label>
        <Choice label="Class" every="All classes" value={filter.title} values={choices(table.slices, (line) => line.class_title)} onChange={(title) => change({ title })} />
        <Choice label="Found by" every="All methods" value={filter.method} values={choices(table.slices, (line) => line.method)} onChange={(method) => change({ method })} />
        <label className="field slice-words">
          <span>Words</span>
          <input type="search" value={filter.text} placeholder="green, rare, …" onChange={(event) => change({ text: event.target.value })} />
        </label>
        <p role="status" className="quiet slice-count">
          {counted(shown.length)} of {counted(table.slices.length)} slices; {counted(table.n_tested)} {table.n_tested === 1 ? "test" : "tests"} made
        </p>
      </Form>
      {picked.length > 0 && !isStatic() && (
        <p className="row slice-picked" role="status">
          {picked.length < 2 ? "Pick another slice to see both side by side." : <Link className="button primary" href={`/slices/${picked[0]}/beside/${picked[1]}${query.run ? `?run=${query.run}` : ""}`}>Side by side</Link>}
        </p>
      )}
      {shown.length > 0 ? (
        <SortedTable rows={shown} columns={columns} rowKey={(line) => line.slice_id} caption="Slices of the run" className="slice-table" rowClass={(line) => `is-${standingOf(line)}`} />
      ) : (
        <p className="note">No slice fits. <button type="button" className="button plain" onClick={() => setFilter({ ...NO_FILTER, standing: "all" })}>Show all</button></p>
      )}
      {table.left.length > 0 && <p className="quiet slice-foot">{table.left.join(" ")}</p>}
      {table.correction && <p className="quiet slice-foot">{table.correction} A failure means that {table.criterion || "the classifier is wrong"}.</p>}
    </>
  );
}

type ChoiceProps = { label: string; every: string; value: string; values: string[]; onChange: (value: string) => void };

function Choice({ label, every, value, values, onChange }: ChoiceProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{every}</option>
        {values.map((one) => <option key={one}>{one}</option>)}
      </select>
    </label>
  );
}
