import { useJobs, WorkProgress } from "../../components/work";
import { isShown } from "./shownWork";

/** Work that is under way or was stopped, with progress, cancel and resume. */
export function WorkList() {
  const { jobs } = useJobs();
  const shown = jobs.filter((job) => isShown(job, jobs));
  if (shown.length === 0) return null;
  return (
    <section className="stack" aria-label="Work">
      {shown.map((job) => <WorkProgress key={job.job_id} job={job} />)}
    </section>
  );
}
