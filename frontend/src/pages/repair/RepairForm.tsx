import { useId, useState } from "react";
import { Link, useSearchParams } from "wouter";
import type { Schemas } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { percent, range } from "../../components/figures";
import { useJob } from "../../components/jobs";
import { argumentsOf, COMPARE_ALL, firstChoice, preselected } from "./choices";

/** What to repair, and how. */
export function RepairForm({ options }: { options: Schemas["RepairOptions"] }) {
  const [params] = useSearchParams();
  const mayChange = useMayChange();
  const { start, isRunning, error } = useJob("repair");
  const [slices, setSlices] = useState(() => preselected(options.slices, params.get("slices")));
  const [strategy, setStrategy] = useState(() => firstChoice(options.strategies));
  const [budget, setBudget] = useState(String(options.budget || Math.min(100, options.n_pool)));
  const budgetId = useId();
  const submit = () => {
    start(argumentsOf({ run: options.run_id, slices, strategy, budget, hasPool: options.n_pool > 0 }));
  };
  const isCollecting = options.only_collects !== "";
  const isWhole = options.slices.length === 0;
  const toggle = (id: string, isOn: boolean) => setSlices(isOn ? [...slices, id] : slices.filter((one) => one !== id));
  return (
    <Form className="stack" onSubmit={submit}>
      {isCollecting && <p className="note">{options.only_collects} Instead you get files: pool rows that fit each slice, how many rows it lacks, and weights for your own training.</p>}
      <div className="repair-choices">
        <Card title="Which slices">
          <fieldset className="choices" disabled={!mayChange}>
            <legend className="unseen">Confirmed slices</legend>
            {isWhole && <p>No slice was confirmed. The classes that fail as a whole are repaired.</p>}
            {options.slices.map(({ title, evidence, words }) => (
              <div key={evidence.slice_id} className="choice">
                <input id={`${budgetId}-${evidence.slice_id}`} type="checkbox" checked={slices.includes(evidence.slice_id)} onChange={(event) => toggle(evidence.slice_id, event.target.checked)} />
                <span>
                  <label htmlFor={`${budgetId}-${evidence.slice_id}`}><strong>{title}</strong></label>{" "}
                  <span className="quiet">fails {percent(evidence.failures_inside / evidence.n_inside)} ({range(evidence.interval_inside)}). {words.cause[0]}{words.explained && " Another slice explains most of it."} <Link href={`/slices/${evidence.slice_id}`}>Look at it</Link></span>
                </span>
              </div>
            ))}
          </fieldset>
        </Card>
        {!isCollecting && <Card title="How">
          <fieldset className="choices" disabled={!mayChange}>
            <legend className="unseen">Strategy</legend>
            <Choice name={COMPARE_ALL} title="Compare all" sentence="Run every strategy that the samples allow, and show one table. The configured one is exported." chosen={strategy} onChoose={setStrategy} />
            {options.strategies.filter((one) => !one.why_not).map((one) => (
              <Choice key={one.name} name={one.name} title={one.title} sentence={`${one.sentence}${one.is_configured ? " Configured." : ""}${one.is_baseline ? " A baseline." : ""}`} chosen={strategy} onChoose={setStrategy} />
            ))}
          </fieldset>
          <details>
            <summary>Not possible here</summary>
            <ul>{options.strategies.filter((one) => one.why_not).map((one) => <li key={one.name}><strong>{one.title}</strong>: {one.why_not}</li>)}</ul>
          </details>
          {options.n_pool > 0 && (
            <label className="field" htmlFor={budgetId}>
              <span>Samples that may be taken from the pool of {options.n_pool}</span>
              <input id={budgetId} type="number" min="0" max={options.n_pool} value={budget} onChange={(event) => setBudget(event.target.value)} disabled={!mayChange} />
            </label>
          )}
        </Card>}
      </div>
      {!isCollecting && <p className="quiet">Always measured beside it, where they apply: {options.baselines.join(", ")}. Figures are of test samples that nothing was trained or chosen on.</p>}
      {mayChange && (
        <div className="row">
          <Button type="submit" kind="primary" disabled={isRunning || (slices.length === 0 && !isWhole)}>{isCollecting ? "Write the files" : "Repair"}</Button>
          {slices.length === 0 && !isWhole && <span className="quiet">Choose at least one slice.</span>}
        </div>
      )}
      {error && <ErrorNote error={error} />}
    </Form>
  );
}

type ChoiceProps = { name: string; title: string; sentence: string; chosen: string; onChoose: (name: string) => void };

/** One strategy to choose. */
function Choice({ name, title, sentence, chosen, onChoose }: ChoiceProps) {
  return (
    <label className="choice">
      <input type="radio" name="strategy" value={name} checked={chosen === name} onChange={() => onChoose(name)} />
      <span><strong>{title}</strong> <span className="quiet">{sentence}</span></span>
    </label>
  );
}
