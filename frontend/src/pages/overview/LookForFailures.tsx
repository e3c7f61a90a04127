import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Card } from "../../components/Card";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { counted } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { useJob } from "../../components/jobs";

/** A project without any run: what is there, and what to do. */
export function FirstRun({ data }: { data: Schemas["OverviewView"] }) {
  const mayChange = useMayChange();
  const total = Object.values(data.splits).reduce((sum, n) => sum + n, 0);
  return (
    <Card title="No run yet">
      <p>
        {total > 0
          ? `There are ${counted(total)} samples of ${counted(data.n_classes)} classes (${Object.entries(data.splits).map(([split, n]) => `${split} ${counted(n)}`).join(", ")}).`
          : "The samples were not read yet; that is the first step of looking for failures."}
      </p>
      <p>Looking for failures reads the samples, asks the classifier, finds kinds of images on which it fails, proves them on samples kept aside, and tries a repair. Finished steps are kept, so you can cancel and resume.</p>
      {mayChange ? <LookForFailures kind="primary" /> : <p className="quiet">The owner of the project can start it.</p>}
    </Card>
  );
}

/** A button that asks with which methods to look for failures, and starts. */
export function LookForFailures({ kind }: { kind: "primary" | "plain" }) {
  const [isOpen, setOpen] = useState(false);
  const { start, isRunning, error } = useJob("run");
  return (
    <>
      <Button kind={kind} onClick={() => setOpen(true)} disabled={isRunning}>Look for failures</Button>
      {error && <ErrorNote error={error} />}
      {isOpen && <MethodDialog onClose={() => setOpen(false)} onStart={(methods) => { setOpen(false); start({ methods }); }} />}
    </>
  );
}

type DialogProps = { onClose: () => void; onStart: (methods: string[]) => void };

/** Choose methods; those of weakspot.toml are chosen at first. */
function MethodDialog({ onClose, onStart }: DialogProps) {
  const choices = useQuery({ queryKey: ["discoverers"], queryFn: () => unwrap(api.GET("/api/discoverers")) });
  const [changed, setChanged] = useState<Record<string, boolean>>({});
  const isChosen = (one: Schemas["MethodChoice"]) => changed[one.name] ?? one.is_configured;
  return (
    <Dialog title="Look for failures" onClose={onClose}>
      <p className="quiet">Whatever they find is proven on samples kept aside, and corrected for everything that was tested. More methods see more, and take longer.</p>
      <Loaded query={choices} what="the methods">
        {({ methods = [] }) => {
          const chosen = methods.filter((one) => isChosen(one) && !one.why_not).map((one) => one.name);
          return (
            <Form onSubmit={() => onStart(chosen)}>
              <fieldset className="choices">
                <legend>Methods</legend>
                {methods.map((one) => (
                  <label key={one.name} className="choice">
                    <input type="checkbox" checked={isChosen(one) && !one.why_not} disabled={one.why_not !== ""} onChange={(event) => setChanged({ ...changed, [one.name]: event.target.checked })} />
                    <span><strong>{one.name}</strong> <span className="quiet">{one.why_not || one.sentence}</span></span>
                  </label>
                ))}
              </fieldset>
              <div className="row">
                <Button type="submit" kind="primary" disabled={chosen.length === 0}>Start</Button>
                <Button onClick={onClose}>Not now</Button>
              </div>
            </Form>
          );
        }}
      </Loaded>
    </Dialog>
  );
}
