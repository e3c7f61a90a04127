import { useQuery } from "@tanstack/react-query";
import { api, unwrap, type Schemas } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { useJob, JobProgress } from "../../components/jobs";
import { useRun } from "../slices/useRun";
import { ChangedImages } from "./ChangedImages";
import { Comparison } from "./Comparison";
import { Downloads } from "./Downloads";
import { KeptRepairs } from "./KeptRepairs";
import { RepairForm } from "./RepairForm";
import { RepairResult } from "./RepairResult";
import "./repair.css";

/** Repair: choose slices and a strategy, run it, and see what it did beside its baselines. */
export function RepairPage() {
  const { query } = useRun();
  const mayChange = useMayChange();
  const { job } = useJob("repair");
  const options = useQuery({
    queryKey: ["repair-options", query.run ?? ""],
    queryFn: () => unwrap(api.GET("/api/repair/options", { params: { query } })),
  });
  const results = useQuery({
    queryKey: ["repair-results", query.run ?? ""],
    queryFn: () => unwrap(api.GET("/api/repair/results", { params: { query } })),
  });
  return (
    <>
      <PageHead title="Repair">
        Retrain the classifier's last layer for confirmed slices, and see on test samples what that did, beside baselines that got as much. Where that layer is not known: which rows to collect, how many, and weights for your own training.
      </PageHead>
      <div className="stack">
        {results.data && results.data.repairs.length > 0 && <ChangedImages runId={results.data.run_id} made={results.data.kept.find((one) => one.is_current)?.repair_id ?? ""} />}
        <Loaded query={options} what="what can be repaired">
          {(data) => (data.why_not ? <p className="note warn">{data.why_not}</p> : <RepairForm key={data.run_id} options={data} />)}
        </Loaded>
        {job && job.state !== "done" && <JobProgress job={job} />}
        <Loaded query={results} what="what repairs did">
          {(data) => (
            <div className="stack">
              {data.note && data.note !== options.data?.why_not && !options.data?.only_collects && <p className="note warn">{data.note}</p>}
              {data.repairs.length === 0 && !data.note && data.run_id && <p className="quiet">Nothing was repaired in this run yet.</p>}
              <KeptRepairs kept={data.kept} runId={data.run_id} />
              {data.repairs.slice(0, 1).map((repair) => <RepairResult key={repair.section.strategy} repair={repair} names={data.names} isChosen />)}
              {mayChange && data.repairs.length > 0 && <Downloads runId={data.run_id} />}
              {data.comparison.length > 0 && <Comparison rows={data.comparison as Schemas["StrategyRow"][]} names={data.names} measuredOn={data.repairs[0]?.section.measured_on ?? ""} />}
              {data.repairs.slice(1).map((repair) => (
                <details key={repair.section.strategy} className="card">
                  <summary>{repair.section.title}: {repair.worse[0] ?? repair.section.sentences[0]}</summary>
                  <RepairResult repair={repair} names={data.names} />
                </details>
              ))}
            </div>
          )}
        </Loaded>
      </div>
    </>
  );
}
