import type { Schemas } from "../../api/client";

type Job = Schemas["JobView"];

/** Return whether a work belongs on the overview: under way, or stopped and not done since in another go. `jobs` are newest first. */
export function isShown(job: Job, jobs: Job[]): boolean {
  if (job.state === "queued" || job.state === "running") return true;
  if (job.state === "done") return false;
  return jobs.find((other) => other.kind === job.kind)?.job_id === job.job_id;
}
