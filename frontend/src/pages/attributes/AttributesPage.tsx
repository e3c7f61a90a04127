import { useEffect, useRef, useState } from "react";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, percent, range } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { useJob, JobProgress } from "../../components/jobs";
import { AddAttributeDialog } from "./AddAttributeDialog";
import { AttributeCard } from "./AttributeCard";
import { AttributeList } from "./AttributeList";
import { CombinationExplorer } from "./CombinationExplorer";
import { EditHistory } from "./EditHistory";
import { Field } from "./EditDialogs";
import { worstValue, type Attribute, type Attributes, type Chosen } from "./tables";
import { useAttributes } from "./useAttributes";
import { ValueSamples } from "./ValueSamples";
import "./attributes.css";

/** Attributes: what can be said of every sample, by right and wrong, alone and together. */
export function AttributesPage() {
  const [title, setTitle] = useState("");
  const query = useAttributes(title);
  return (
    <>
      <PageHead
        title="Attributes"
        aside={query.data && (
          <Field label="Class">
            <select value={title} onChange={(event) => setTitle(event.target.value)}>
              <option value="">all classes</option>
              {query.data.titles.map((one) => <option key={one} value={one}>{one}</option>)}
            </select>
          </Field>
        )}
      >
        What can be said of every sample, and how often the classifier fails there. All counts are of the half that you may look at; only a proof asks the other half.
      </PageHead>
      <Loaded query={query} what="attributes">{(view) => <Everything view={view} title={title} />}</Loaded>
    </>
  );
}

/** The page below its heading. */
function Everything({ view, title }: { view: Attributes; title: string }) {
  const mayChange = useMayChange();
  const [picked, setPicked] = useState("");
  // Until something is chosen or closed, the value that fails most is shown.
  const [chosen, setChosen] = useState<Chosen[] | null | undefined>(undefined);
  const [isAdding, setAdding] = useState(false);
  const images = useRef<HTMLDivElement>(null);
  const attribute = view.attributes.find((one) => one.attribute_id === picked) ?? view.attributes[0];
  const wanted = chosen === undefined ? worstOf(attribute) : chosen;
  const shown = wanted?.every((one) => isKnown(view, one)) ? wanted : null;
  useEffect(() => {
    if (chosen) images.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const single = shown?.length === 1 && shown[0]?.attribute === attribute?.attribute_id ? (shown[0]?.value ?? null) : null;
  return (
    <div className="stack">
      <Assigning view={view} />
      <div className="attributes-frame">
        <Card
          title={`${counted(view.attributes.length)} attributes`}
          className="attributes-side"
          aside={mayChange && view.can_tell && <Button aria-label="Add an attribute" onClick={() => setAdding(true)}>Add</Button>}
        >
          <AttributeList attributes={view.attributes} chosen={attribute?.attribute_id ?? ""} onChoose={(id) => { setPicked(id); setChosen(undefined); }} />
        </Card>
        <div className="stack">
          <p role="status" className="quiet">{title || "All classes"}: {counted(view.failures.count)} of {counted(view.failures.total)} samples fail, {percent(view.failures.value)} ({range(view.failures.interval)}).</p>
          {shown && (
            <div ref={images}>
              <Card title={wordsOf(view, shown)} aside={<Button kind="quiet" onClick={() => setChosen(null)}>Close</Button>}>
                <ValueSamples key={`${view.version} ${JSON.stringify(shown)}`} chosen={shown} title={title} tables={view.tables} version={view.version} />
              </Card>
            </div>
          )}
          {attribute ? (
            <AttributeCard key={attribute.attribute_id} view={view} attribute={attribute} shown={single} onShow={(value) => setChosen(single === value ? null : [{ attribute: attribute.attribute_id, value }])} />
          ) : (
            <Card><p>There is no attribute yet.</p></Card>
          )}
          {view.attributes.some((one) => one.state === "assigned") && (
            <Card title="Combinations">
              <CombinationExplorer attributes={view.attributes} title={title} version={view.version} onShow={setChosen} />
            </Card>
          )}
          <Card title="Edits"><EditHistory version={view.version} /></Card>
          {view.notes.length > 0 && (
            <details className="card">
              <summary>What was left out ({view.notes.length})</summary>
              <ul>{view.notes.map((note) => <li key={note}>{note}</li>)}</ul>
            </details>
          )}
        </div>
      </div>
      {isAdding && <AddAttributeDialog version={view.version} onDone={() => setAdding(false)} />}
    </div>
  );
}

/** Whether a value is still there, and its samples are known. */
function isKnown(view: Attributes, chosen: Chosen): boolean {
  const attribute = view.attributes.find((one) => one.attribute_id === chosen.attribute);
  return attribute?.state === "assigned" && attribute.values.some((value) => value.value_id === chosen.value);
}

/** The value of an attribute whose images are shown at first. */
function worstOf(attribute: Attribute | undefined): Chosen[] | null {
  const worst = attribute && worstValue(attribute);
  return worst ? [{ attribute: attribute.attribute_id, value: worst.value_id }] : null;
}

function wordsOf(view: Attributes, chosen: Chosen[]): string {
  const words = chosen.map((one) => {
    const attribute = view.attributes.find((each) => each.attribute_id === one.attribute);
    return `${attribute?.name ?? ""}: ${attribute?.values.find((value) => value.value_id === one.value)?.title ?? ""}`;
  });
  return words.join(", ");
}

/** Whether attributes have to be assigned, and how far that is. */
function Assigning({ view }: { view: Attributes }) {
  const mayChange = useMayChange();
  const { start, job, isRunning, error } = useJob("attributes");
  const waiting = view.attributes.filter((attribute) => attribute.state === "waiting").map((attribute) => attribute.name);
  const isNeeded = !view.is_assigned || waiting.length > 0;
  const isShown = job !== null && (isRunning || (isNeeded && job.state !== "done"));
  if (!isNeeded && !isShown) return null;
  return (
    <div className="stack">
      {isNeeded && !isRunning && (
        <div className="note">
          <p>
            {view.is_assigned
              ? `${waiting.join(", ")}: the words have not been compared with the images yet.`
              : "Attributes were not assigned yet; only your own columns are shown. Assigning measures every image and compares it with words. It reads no labels."}
          </p>
          {mayChange && <Button kind="primary" onClick={() => start({})}>{view.is_assigned ? "Assign now" : "Assign attributes"}</Button>}
        </div>
      )}
      {isShown && <JobProgress job={job} />}
      {error && <ErrorNote error={error} />}
    </div>
  );
}
