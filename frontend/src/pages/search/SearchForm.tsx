import { useState } from "react";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { useWork, WorkProgress } from "../../components/work";
import { CostLine, useCost } from "./CostLine";
import { captionsOf, type Setup } from "./drawings";

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
  const work = useWork("search");
  const isBudget = budget >= SMALLEST_BUDGET && budget <= setup.most_budget;
  const start = () => work.start({ class_name: className, target, captions: captionsOf(own), budget, agreed_cost: isAgreed ? cost.amount : 0 });
  return (
    <Card title="Search for failing captions">
      <form className="stack" onSubmit={(event) => { event.preventDefault(); start(); }}>
        <div className="row">
          <label className="field">
            <span>Class to search</span>
            <select value={className} onChange={(event) => setClassName(event.target.value)}>
              {setup.class_names.map((name) => <option key={name}>{name}</option>)}
            </select>
          </label>
          <label className="field">
            <span>Taken for</span>
            <select value={target} onChange={(event) => setTarget(event.target.value)}>
              <option value="">any class</option>
              {setup.class_names.filter((name) => name !== className).map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
          <label className="field">
            <span>Most pictures</span>
            <input className="short" type="number" min={SMALLEST_BUDGET} max={setup.most_budget} value={budget} onChange={(event) => setBudget(event.target.valueAsNumber || 0)} />
          </label>
        </div>
        <label className="field">
          <span>Your own captions, measured first (optional, one a line)</span>
          <textarea rows={2} value={own} onChange={(event) => setOwn(event.target.value)} placeholder="it is green." />
        </label>
        <CostLine cost={cost} isAgreed={isAgreed} onAgree={setIsAgreed} />
        <div className="row"><Button type="submit" disabled={!isBudget || work.isRunning || (cost.mustAgree && !isAgreed)}>Search for failing captions</Button></div>
      </form>
      {work.error && <ErrorNote error={work.error} />}
      <WorkProgress job={work.job} />
    </Card>
  );
}
