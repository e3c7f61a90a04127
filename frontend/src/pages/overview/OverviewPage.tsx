import { useQuery } from "@tanstack/react-query";
import { api, serverRoot, unwrap } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { useJob } from "../../components/jobs";
import { useRun } from "../slices/useRun";
import { BigFigures } from "./BigFigures";
import { ClassAccuracy } from "./ClassAccuracy";
import { ConfusionTable } from "./ConfusionTable";
import { Headline } from "./FirstAnswer";
import { FirstRun, LookForFailures } from "./LookForFailures";
import { RunsCard } from "./RunsCard";
import { Tried } from "./Tried";
import { UploadTrial } from "./UploadTrial";
import { JobList } from "./JobList";
import { WorstSlices } from "./WorstSlices";
import "./overview.css";

/** Overview: how the classifier does, where it does worst, what was tried, and the jobs under way. */
export function OverviewPage() {
  const { query } = useRun();
  const found = useQuery({
    queryKey: ["overview", query.run ?? ""],
    queryFn: () => unwrap(api.GET("/api/overview", { params: { query } })),
  });
  return (
    <>
      <PageHead title="Overview" aside={<Actions run={found.data?.run?.run_id} hasReport={found.data?.has_report ?? false} />}>
        How the classifier does, where it does worst, and what was tried.
      </PageHead>
      <div className="stack">
        <JobList />
        <Loaded query={found} what="the overview">
          {(data) => (
            <div className="stack">
              {data.missing && <p className="note warn" role="alert">{data.missing}</p>}
              {data.run ? (
                <>
                  <Headline answer={data.run.answer} />
                  <WorstSlices run={data.run} />
                  <BigFigures data={data} run={data.run} />
                  <div className="overview-halves">
                    {data.confusion && <ConfusionTable confusion={data.confusion} />}
                    <ClassAccuracy classes={data.run.classes} isSeveral={data.task === "multi-label"} />
                  </div>
                  <RunsCard chosen={data.run.run_id} />
                  <Tried run={data.run} />
                </>
              ) : (
                <FirstRun data={data} />
              )}
            </div>
          )}
        </Loaded>
        {!isStatic() && found.data?.run && <UploadTrial />}
      </div>
    </>
  );
}

/** What can be done with the whole project. */
function Actions({ run, hasReport }: { run: string | undefined; hasReport: boolean }) {
  const mayChange = useMayChange();
  const report = useJob("report");
  return (
    <>
      {hasReport && run && !isStatic() && (
        <a className="button plain" href={`${serverRoot}/api/runs/${run}/report`} target="_blank" rel="noopener">Open the report</a>
      )}
      {mayChange && run && (
        <Button onClick={() => report.start({ run })} disabled={report.isRunning}>{hasReport ? "Write the report again" : "Write the report"}</Button>
      )}
      {mayChange && run && <LookForFailures kind="plain" />}
      {report.error && <ErrorNote error={report.error} />}
    </>
  );
}
