import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { chance, counted, percent, range } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { Loaded } from "../../components/Loaded";
import { useJob, JobProgress } from "../../components/jobs";

type Other = Schemas["OtherModel"];

/** The slice on another classifier, if there is one to compare with. */
export function CompareCard({ slice }: { slice: Schemas["SlicePageView"] }) {
  const models = useQuery({ queryKey: ["comparisons"], queryFn: () => unwrap(api.GET("/api/comparisons")), enabled: !isStatic() });
  const [chosen, setChosen] = useState("");
  const others = models.data?.others ?? [];
  const other = others.find((one) => one.name === chosen) ?? others[0];
  if (!other) return null;
  return (
    <Card
      title="With another model"
      aside={others.length > 1 && (
        <label className="field"><span>Compare with</span>
          <select value={other.name} onChange={(event) => setChosen(event.target.value)}>{others.map((one) => <option key={one.name}>{one.name}</option>)}</select>
        </label>
      )}
    >
      <Comparing other={other} />
      {other.n_samples !== null && (other.slice_ids.includes(slice.line.slice_id) ? (
        <Compared key={other.name} slice={slice} other={other} />
      ) : (
        <p className="quiet slice-comparison-words">This slice took no part: only slices that were confirmed then did.</p>
      ))}
    </Card>
  );
}

/** How two classifiers do as a whole, and the beginning of another comparison. */
export function Comparing({ other }: { other: Other }) {
  const job = useJob("compare");
  const mayChange = useMayChange();
  const isOwn = job.job?.arguments.other === other.name;
  return (
    <>
      {other.n_samples === null ? <p>{other.name} was not compared with this model yet.</p> : (
        <p>Over {counted(other.n_samples)} shared samples this model fails on {percent(other.failure_rate)}, {other.name} on {percent(other.other_rate)}; {percent(other.shared_failures)} of the failures of either are failures of both.</p>
      )}
      {other.notes.map((note) => <p key={note} className="quiet">{note}</p>)}
      {mayChange && <Button onClick={() => job.start({ other: other.name })} disabled={job.isRunning}>{other.n_samples === null ? "Compare" : "Compare again"}</Button>}
      {isOwn && job.job?.state !== "done" && <JobProgress job={job.job} />}
      {job.error && <ErrorNote error={job.error} />}
    </>
  );
}

function Compared({ slice, other }: { slice: Schemas["SlicePageView"]; other: Other }) {
  const { slice_id } = slice.line;
  const found = useQuery({
    queryKey: ["slice comparison", slice_id, other.name, other.n_samples],
    queryFn: () => unwrap(api.GET("/api/slices/{slice_id}/comparison", { params: { path: { slice_id }, query: { other: other.name } } })),
  });
  return (
    <Loaded query={found} what="the comparison">
      {(data) => (
        <>
          <p className="slice-comparison-words">{data.sentence}</p>
          <table>
            <caption className="unseen">Failure rates of both models on this slice</caption>
            <thead><tr><th scope="col">Model</th><th scope="col">Members fail</th><th scope="col">Rest of the class fails</th><th scope="col">Slice holds</th></tr></thead>
            <tbody>{[data.own, data.other].map((one) => (
              <tr key={one.model}>
                <th scope="row">{one.model}</th>
                <RateCell rate={one.inside} /><RateCell rate={one.outside} isQuiet />
                <td>{one.holds ? "yes" : "not shown"}</td>
              </tr>
            ))}</tbody>
          </table>
          <p className="quiet">
            Of {data.n_members} members both fail on {data.both_fail}, only this model on {data.only_own_fails}, only {data.other.model} on {data.only_other_fails}, neither on {data.neither_fails}. Difference {percent(data.difference)} ({range(data.interval)}), McNemar p = {chance(data.p_value)}.
          </p>
        </>
      )}
    </Loaded>
  );
}

function RateCell({ rate, isQuiet = false }: { rate: Schemas["Share"]; isQuiet?: boolean }) {
  return (
    <td>
      <span>{percent(rate.value)} <span className="quiet">{rate.count} of {rate.total}</span></span>
      <IntervalBar rate={rate.value} interval={rate.interval} label="Fails" kind={isQuiet ? "quiet" : "wrong"} />
    </td>
  );
}
