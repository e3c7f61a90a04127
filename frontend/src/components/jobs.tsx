import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { allBut, askAgain, named } from "../api/askAgain";
import { api, unwrap, type Schemas } from "../api/client";
import { isStatic } from "../api/static";
import { useMayChange } from "../app/session";
import { Button } from "./Button";
import { ErrorNote } from "./ErrorNote";
import { counted, timeLeft } from "./figures";

export type JobView = Schemas["JobView"];

const JOBS = ["jobs"];
const WATCH_MILLISECONDS = 700;
const IDLE_MILLISECONDS = 15_000;
const KIND_WORDS: Record<string, string> = {
  preflight: "Checking data and classifier",
  run: "Looking for failures",
  repair: "Repairing",
  report: "Writing the report",
  attributes: "Assigning attributes",
  map: "Laying out the map",
  compare: "Comparing classifiers",
  search: "Searching with generated images",
  counterfactual: "Generating counterfactuals",
  "study-repairs": "Repairing by the phrases of a study",
};
const STAGE_WORDS: Record<string, string> = {
  preflight: "checking data and classifier",
  ingest: "reading the samples",
  images: "looking at the images",
  embed: "embedding images",
  classify: "asking the classifier",
  groups: "looking for near-identical images",
  attributes: "assigning attributes",
  discover: "looking for slices",
  describe: "finding words",
  verify: "testing on samples that took no part",
  repair: "repairing",
  advise: "working out what to do",
};
const STATE_WORDS: Record<JobView["state"], string> = {
  queued: "waits for other jobs",
  running: "under way",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "interrupted",
};

/** Return what a kind of job is called on pages. */
export function jobTitle(kind: string): string {
  return KIND_WORDS[kind] ?? kind;
}

/** Return what a step of a job is called on pages. */
export function stageTitle(stage: string): string {
  return STAGE_WORDS[stage] ?? stage;
}

/** Return whether a job waits or runs. */
export function isUnderWay(job: JobView | null | undefined): boolean {
  return job?.state === "queued" || job?.state === "running";
}

/** Return the job of a kind that pages show: the one under way, else the newest. */
export function shownJob(jobs: JobView[], kind: string): JobView | null {
  const own = jobs.filter((job) => job.kind === kind);
  return own.find((job) => job.state === "running") ?? own.find(isUnderWay) ?? own[0] ?? null;
}

/** Return the last jobs, watched closely while one is under way; when one ends, everything shown is asked for again. */
export function useJobs(): { jobs: JobView[]; error: Error | null } {
  const queries = useQueryClient();
  const { data, error } = useQuery({
    queryKey: JOBS,
    queryFn: () => unwrap(api.GET("/api/jobs")),
    enabled: !isStatic(),
    refetchInterval: (query) => (query.state.data?.jobs?.some(isUnderWay) ? WATCH_MILLISECONDS : IDLE_MILLISECONDS),
  });
  const jobs = data?.jobs ?? [];
  const waiting = useRef("");
  const underWay = jobs.filter(isUnderWay).map((job) => job.job_id).join(" ");
  useEffect(() => {
    const ended = waiting.current.split(" ").filter((id) => id && !underWay.includes(id));
    waiting.current = underWay;
    if (ended.length > 0) void askAgain(queries, allBut("jobs", "session"));
  }, [underWay, queries]);
  return { jobs, error };
}

/** Start a job of a kind and watch the newest of it. */
export function useJob(kind: string): { start: (args: Record<string, unknown>) => void; job: JobView | null; isRunning: boolean; error: Error | null } {
  const queries = useQueryClient();
  const { jobs, error } = useJobs();
  const starting = useMutation({
    mutationFn: (args: Record<string, unknown>) =>
      unwrap(api.POST("/api/jobs", { body: { kind, arguments: args } })),
    onSettled: () => askAgain(queries, named("jobs")),
  });
  const job = shownJob(jobs, kind);
  return { start: starting.mutate, job, isRunning: starting.isPending || isUnderWay(job), error: starting.error ?? error };
}

/** How far a job is, with what can be done about it: cancel while it is under way, resume when it was stopped. */
export function JobProgress({ job }: { job: JobView | null }) {
  const queries = useQueryClient();
  const mayChange = useMayChange();
  const change = useMutation({
    mutationFn: ({ id, what }: { id: string; what: "cancel" | "resume" }) => {
      const params = { params: { path: { job_id: id } } };
      return unwrap(what === "cancel" ? api.POST("/api/jobs/{job_id}/cancel", params) : api.POST("/api/jobs/{job_id}/resume", params));
    },
    onSettled: () => askAgain(queries, named("jobs")),
  });
  if (!job) return null;
  const title = jobTitle(job.kind);
  const stage = stageTitle(job.stage);
  const isActive = isUnderWay(job);
  // A step that is one thing has nothing to count: its bar moves until it is over.
  const isCounted = job.total !== null && job.total > 1;
  const canResume = ["failed", "cancelled", "interrupted"].includes(job.state);
  return (
    <div className={`job ${job.state}`} role="group" aria-label={title}>
      <p role="status">
        <strong>{title}</strong>: {STATE_WORDS[job.state]}
        {isActive && stage && `, ${stage}`}
        {job.message && `. ${job.message}`}
      </p>
      {job.state === "running" && (
        <p className="job-progress">
          <progress aria-label={`${title}, ${stage}`} {...(isCounted ? { value: job.done, max: job.total ?? 1 } : {})} />
          {isCounted ? <span className="quiet figure">{counted(job.done)} of {counted(job.total ?? 0)}{job.seconds_left === null ? "" : `, ${timeLeft(job.seconds_left)} left in this step`}</span> : null}
        </p>
      )}
      {mayChange && (isActive || canResume) && (
        <div className="row">
          {isActive && <Button onClick={() => change.mutate({ id: job.job_id, what: "cancel" })} disabled={change.isPending}>Cancel</Button>}
          {canResume && <Button onClick={() => change.mutate({ id: job.job_id, what: "resume" })} disabled={change.isPending}>Resume</Button>}
        </div>
      )}
      {change.error && <ErrorNote error={change.error} />}
    </div>
  );
}
