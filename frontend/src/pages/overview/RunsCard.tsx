import { useQuery } from "@tanstack/react-query";
import { api, unwrap, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { counted } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { SortedTable, type Column } from "../../components/SortedTable";
import { useRun } from "../slices/useRun";

type Run = Schemas["RunView"];

/** When a run was started, in the reader's own time. */
export function when(iso: string): string {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? iso : time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** All runs; the chosen one is shown on every page. */
export function RunsCard({ chosen }: { chosen: string }) {
  const { choose } = useRun();
  const runs = useQuery({ queryKey: ["runs"], queryFn: () => unwrap(api.GET("/api/runs")) });
  const columns: Column<Run>[] = [
    { key: "started", title: "Started", cell: (run) => <span title={run.run_id}>{when(run.started)}</span>, order: (run) => run.started },
    { key: "command", title: "By", cell: (run) => <code>{run.command}</code> },
    { key: "slices", title: "Slices", cell: (run) => counted(run.n_slices), order: (run) => run.n_slices, isNumber: true },
    { key: "published", title: "Confirmed", cell: (run) => counted(run.n_published), order: (run) => run.n_published, isNumber: true },
    { key: "repaired", title: "Repaired", cell: (run) => (run.is_repaired ? "yes" : "no") },
    {
      key: "choose",
      title: "Shown",
      cell: (run) => (run.run_id === chosen ? <span className="badge good">shown now</span> : <Button kind="quiet" onClick={() => choose(run.run_id)} aria-label={`Show the run of ${when(run.started)}`}>Show</Button>),
    },
  ];
  return (
    <Card title="Runs">
      <Loaded query={runs} what="the runs">
        {(data) => <SortedTable rows={data.runs ?? []} columns={columns} rowKey={(run) => run.run_id} caption="All runs of the project" />}
      </Loaded>
    </Card>
  );
}
