import { useQueries } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { api, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { useJob, JobProgress } from "../../components/jobs";
import { captionsOf, imagesOf, withCaption, type Setup } from "./generation";
import { CostLine, useCost } from "./CostLine";

const EACH = 24;

/** Captions of a class, to be generated and measured beside the unchanged images. */
export function CounterfactualForm({ setup }: { setup: Setup }) {
  const [className, setClassName] = useState(setup.starts[0]?.class_name ?? setup.class_names[0] ?? "");
  const [text, setText] = useState("");
  const [each, setEach] = useState(EACH);
  const [isAgreed, setIsAgreed] = useState(false);
  const captions = captionsOf(text);
  const checks = useChecks(className, captions);
  const possible_prompts = captions.filter((caption) => !checks[caption]);
  const cost = useCost(setup, imagesOf(captions, each));
  const job = useJob("counterfactual");
  const starts = setup.starts.filter((start) => start.class_name === className);
  const mayStart = possible_prompts.length > 0 && !job.isRunning && each >= 1 && (!cost.mustAgree || isAgreed);
  return (
    <Card title="Generate and measure">
      <Form className="stack" onSubmit={() => job.start({ class_name: className, captions, n_each: each, agreed_cost: isAgreed ? cost.amount : 0 })}>
        <div className="row">
          <label className="field">
            <span>Class</span>
            <select value={className} onChange={(event) => setClassName(event.target.value)}>
              {setup.class_names.map((name) => <option key={name}>{name}</option>)}
            </select>
          </label>
          <label className="field">
            <span>Images per caption</span>
            <input className="short" type="number" min={1} max={200} value={each} onChange={(event) => setEach(event.target.valueAsNumber || 0)} />
          </label>
        </div>
        <label className="field">
          <span>Captions, one per line: a place (“on a white background”), a property (“green”) or a whole prompt</span>
          <textarea rows={4} value={text} onChange={(event) => setText(event.target.value)} placeholder="on a white background" />
        </label>
        {starts.length > 0 && (
          <p className="starts">
            <span className="quiet">Words of slices: </span>
            {starts.map((start) => <Button key={start.caption} kind="quiet" onClick={() => setText(withCaption(text, start.caption))}>{start.caption}</Button>)}
          </p>
        )}
        <ul className="refusals" role="status" aria-label="Captions that cannot be generated">
          {captions.filter((caption) => checks[caption]).map((caption) => <li key={caption}><strong>{caption}</strong>: {checks[caption]}</li>)}
        </ul>
        {setup.can_say && <details><summary>What the generator “{setup.generator}” understands</summary><CanSay text={setup.can_say} /></details>}
        <CostLine cost={cost} isAgreed={isAgreed} onAgree={setIsAgreed} />
        <div className="row"><Button type="submit" kind="primary" disabled={!mayStart}>Generate and measure</Button></div>
      </Form>
      {job.error && <ErrorNote error={job.error} />}
      <JobProgress job={job.job} />
    </Card>
  );
}

function CanSay({ text }: { text: string }) {
  const parts = text.replace(/^Say only /, "").replace(/\.$/, "").split("; ");
  return <ul>{parts.map((part) => <li key={part}>{part}</li>)}</ul>;
}

/** Return why captions cannot be generated, by caption; asked for a moment after typing. */
function useChecks(className: string, captions: string[]): Record<string, string> {
  const waited = useDeferredValue(captions.join("\n"));
  const asked = captionsOf(waited);
  const found = useQueries({
    queries: asked.map((caption) => ({
      queryKey: ["generation", "prompt", className, caption],
      queryFn: () => unwrap(api.GET("/api/generation/prompt", { params: { query: { class_name: className, caption } } })),
      staleTime: Infinity,
    })),
  });
  return Object.fromEntries(asked.map((caption, place) => [caption, found[place]?.data?.refusal ?? ""]));
}
