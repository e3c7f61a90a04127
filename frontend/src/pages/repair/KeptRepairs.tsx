import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { allBut, askAgain } from "../../api/askAgain";
import { api, unwrap, type Schemas } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { momentsApart, percent, points } from "../../components/figures";

type Kept = Schemas["KeptRepairView"];
type Slice = Schemas["KeptSlice"];

/** All repairs of a run side by side; any of them can be gone back to, none is lost. */
export function KeptRepairs({ kept, runId }: { kept: Kept[]; runId: string }) {
  const mayChange = useMayChange();
  const queries = useQueryClient();
  const back = useMutation({
    mutationFn: (repairId: string) => unwrap(api.POST("/api/repair/current", { params: { query: { run: runId } }, body: { repair_id: repairId } })),
    onSuccess: () => askAgain(queries, allBut("session")),
  });
  if (kept.length < 2) return null;
  const made = momentsApart(kept.map((one) => one.made)).map((one) => (one === "" ? "earlier" : one));
  const slices = [...new Map(kept.flatMap((one) => one.slices).map((one) => [one.slice_id, one.title]))];
  return (
    <Card title="All repairs of this run">
      <p className="quiet">Right on test samples, before and after. The one in use is shown below, downloaded and reported; the others are kept with their files.</p>
      <div className="table-box" tabIndex={0} role="region" aria-label="All repairs of this run">
        <table>
          <thead>
            <tr>
              <th scope="col">Repair</th>
              {slices.map(([id, title]) => <th key={id} scope="col"><Link href={`/slices/${id}`}>{title}</Link></th>)}
              <th scope="col">Overall</th>
              <th scope="col">Got worse</th>
              <th scope="col"><span className="unseen">Use</span></th>
            </tr>
          </thead>
          <tbody>
            {kept.map((one, place) => (
              <tr key={one.repair_id}>
                <th scope="row">{one.title}{one.n_strategies > 1 && ` and ${one.n_strategies - 1} compared`}<br /><small className="quiet">{made[place]}</small></th>
                {slices.map(([id]) => <td key={id}><Moved found={one.slices.find((slice) => slice.slice_id === id)} /></td>)}
                <td><Moved found={one} /></td>
                <td>{one.worse || "–"}</td>
                <td>{one.is_current ? <span className="badge">in use</span> : mayChange && <Button onClick={() => back.mutate(one.repair_id)} disabled={back.isPending} aria-label={`Use this one: ${one.title}, ${made[place]}`}>Use this one</Button>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {back.isError && <ErrorNote error={back.error} />}
    </Card>
  );
}

function Moved({ found }: { found: Pick<Slice, "n_samples" | "right_before" | "right_after"> | undefined }) {
  if (!found?.n_samples) return <>–</>;
  const { n_samples: all, right_before: before, right_after: after } = found;
  return <span className="figure">{percent(before / all)} → {percent(after / all)}<br /><small>{points((after - before) / all)} points of {all}</small></span>;
}
