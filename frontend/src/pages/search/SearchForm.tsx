import { useState } from "react";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { useJob, JobProgress } from "../../components/jobs";
import { CostLine, useCost } from "./CostLine";
import { captionsOf, type Setup } from "./generation";

const SMALLEST_BUDGET = 16;
const USUAL_BUDGET = 1000;

/** Search for captions that make the classifier fail: class, budget, cost. */
export function SearchForm({ setup }: { setup: Setup }) {
  const [className, setClassName] = useState(setup.starts[0]?.class_name ?? setup.class_names[0] ?? "");
  const [target, setTarget] = useState("");
  const [own, setOwn] = useState("");
  const [budget, setBudget] = useState(Math.min(setup.budget, USUAL_BUDGET));
  const [isAgreed, setIsAgreed] = useState(false);
  const cost = useCost(setup, budget);
  const job = useJob("search");
  const isBudget = budget >= SMALLEST_BUDGET && budget <= setup.most_budget;
  const start = () => job.start({ class_name: className, target, captions: captionsOf(own), budget, agreed_cost: isAgreed ? cost.amount : 0 });
  return (
    <Card title="Search for failing captions">
      <Form className="stack" onSubmit={start}>
        <div className="row">
          <label className="field">
            <span>Class to search</span>
            <select value={className} onChange={(event) => setClassName(event.target.value)}>
              {setup.class_names.map((name) => <option key={name}>{name}</option>)}
            </select>
          </label>
          <label className="field">
            <span>Confused with</span>
            <select value={target} onChange={(event) => setTarget(event.target.value)}>
              <option value="">any class</option>
              {setup.class_names.filter((name) => name !== className).map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
          <label className="field">
            <span>Most images</span>
            <input className="short" type="number" min={SMALLEST_BUDGET} max={setup.most_budget} value={budget} onChange={(event) => setBudget(event.target.valueAsNumber || 0)} />
          </label>
        </div>
        <label className="field">
          <span>Your own captions, measured first (optional, one per line)</span>
          <textarea rows={2} value={own} onChange={(event) => setOwn(event.target.value)} placeholder="it is green." />
        </label>
        <CostLine cost={cost} isAgreed={isAgreed} onAgree={setIsAgreed} />
        <div className="row"><Button type="submit" disabled={!isBudget || job.isRunning || (cost.mustAgree && !isAgreed)}>Search for failing captions</Button></div>
      </Form>
      {job.error && <ErrorNote error={job.error} />}
      <JobProgress job={job.job} />
    </Card>
  );
}
