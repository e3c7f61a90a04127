import { isUnderWay, JobProgress, useJobs, type JobView } from "../../components/jobs";

/** Return whether a job belongs on the overview: under way, or stopped and not done since by another. `jobs` are newest first. */
export function isShown(job: JobView, jobs: JobView[]): boolean {
  if (isUnderWay(job)) return true;
  if (job.state === "done") return false;
  return jobs.find((other) => other.kind === job.kind)?.job_id === job.job_id;
}

/** Jobs that are under way or were stopped, with progress, cancel and resume. */
export function JobList() {
  const { jobs } = useJobs();
  const shown = jobs.filter((job) => isShown(job, jobs));
  if (shown.length === 0) return null;
  return (
    <section className="stack" aria-label="Jobs">
      {shown.map((job) => <JobProgress key={job.job_id} job={job} />)}
    </section>
  );
}
