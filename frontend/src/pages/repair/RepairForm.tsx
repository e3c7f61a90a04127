import { useId, useState, type FormEvent } from "react";
import { Link, useSearchParams } from "wouter";
import type { Schemas } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { percent, range } from "../../components/figures";
import { useWork } from "../../components/work";
import { argumentsOf, COMPARE_ALL, firstChoice, preselected } from "./choices";

/** What to repair, and how. */
export function RepairForm({ options }: { options: Schemas["RepairOptions"] }) {
  const [params] = useSearchParams();
  const mayChange = useMayChange();
  const { start, isRunning, error } = useWork("repair");
  const [slices, setSlices] = useState(() => preselected(options.slices, params.get("slices")));
  const [strategy, setStrategy] = useState(() => firstChoice(options.strategies));
  const [budget, setBudget] = useState(String(options.budget || Math.min(100, options.n_pool)));
  const budgetId = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    start(argumentsOf({ run: options.run_id, slices, strategy, budget, hasPool: options.n_pool > 0 }));
  };
  const toggle = (id: string, isOn: boolean) => setSlices(isOn ? [...slices, id] : slices.filter((one) => one !== id));
  return (
    <form className="stack" onSubmit={submit}>
      <div className="repair-choices">
        <Card title="Which slices">
          <fieldset className="choices" disabled={!mayChange}>
            <legend className="unseen">Confirmed slices</legend>
            {options.slices.map((slice) => (
              <div key={slice.slice_id} className="choice">
                <input id={`${budgetId}-${slice.slice_id}`} type="checkbox" checked={slices.includes(slice.slice_id)} onChange={(event) => toggle(slice.slice_id, event.target.checked)} />
                <span>
                  <label htmlFor={`${budgetId}-${slice.slice_id}`}><strong>{slice.title}</strong></label>{" "}
                  <span className="quiet">fails {percent(slice.inside.value)} ({range(slice.inside)}). {slice.cause}{!slice.is_finding && " Another slice explains most of it."} <Link href={`/slices/${slice.slice_id}`}>Look at it</Link></span>
                </span>
              </div>
            ))}
          </fieldset>
        </Card>
        <Card title="How">
          <fieldset className="choices" disabled={!mayChange}>
            <legend className="unseen">Strategy</legend>
            <Choice name={COMPARE_ALL} title="Compare all" sentence="Run every strategy that the samples allow, and show one table. The configured one is handed back." chosen={strategy} onChoose={setStrategy} />
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
        </Card>
      </div>
      <p className="quiet">Always measured beside it, where they apply: {options.baselines.join(", ")}. Figures are of test samples that nothing was trained or chosen on.</p>
      {mayChange && (
        <div className="row">
          <Button type="submit" kind="primary" disabled={isRunning || slices.length === 0}>Repair</Button>
          {slices.length === 0 && <span className="quiet">Choose at least one slice.</span>}
        </div>
      )}
      {error && <ErrorNote error={error} />}
    </form>
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
