import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { api, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { percent } from "../../components/figures";

const N_CHOSEN = 4;
const N_SHOWN = 200;
const INSTRUCTIONS = "Compare the images that the AI got wrong with those it got right. Say in your own words what the wrong ones have in common. Try several phrases; accept the best.";

/** Title, classes and instructions of a new study. */
export function NewStudyDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [, go] = useLocation();
  const [title, setTitle] = useState("");
  const [instructions, setInstructions] = useState(INSTRUCTIONS);
  const [chosen, setChosen] = useState<string[] | null>(null);
  const classes = useQuery({ queryKey: ["classes"], queryFn: () => unwrap(api.GET("/api/classes")) });
  const ranked = classes.data?.classes ?? [];
  const promising = ranked.filter((one) => one.is_promising);
  const proposed = (promising.length ? promising : ranked).slice(0, N_CHOSEN).map((one) => one.title);
  const taken = chosen ?? proposed;
  const create = useMutation({
    mutationFn: () => unwrap(api.POST("/api/studies", { body: { title, instructions, classes: taken } })),
    onSuccess: (study) => { void queries.invalidateQueries({ queryKey: ["studies"] }); go(`/studies/${study.study_id}`); },
  });
  const toggle = (one: string) => setChosen(taken.includes(one) ? taken.filter((other) => other !== one) : [...taken, one]);
  const submit = () => create.mutate();
  return (
    <Dialog title="New study" onClose={onClose}>
      <Form className="stack study-form" onSubmit={submit}>
        <label className="field"><span>Title, seen by everybody</span><input value={title} onChange={(event) => setTitle(event.target.value)} required maxLength={200} autoComplete="off" /></label>
        <fieldset>
          <legend>Classes ({taken.length} chosen, the most promising first)</legend>
          <Loaded query={classes} what="the classes">
            {() => (
              <ul className="plain-list study-classes">
                {ranked.slice(0, N_SHOWN).map((one) => (
                  <li key={one.title}>
                    <label><input type="checkbox" checked={taken.includes(one.title)} onChange={() => toggle(one.title)} /> {one.title} <span className="quiet">{percent(one.accuracy.value)} right, {one.n_failed} wrong</span></label>
                  </li>
                ))}
              </ul>
            )}
          </Loaded>
        </fieldset>
        <label className="field"><span>Instructions, read before the work begins</span><textarea rows={4} value={instructions} onChange={(event) => setInstructions(event.target.value)} maxLength={10_000} /></label>
        {create.error && <ErrorNote error={create.error} />}
        <div className="row">
          <Button kind="primary" type="submit" disabled={!title.trim() || taken.length === 0 || create.isPending}>Begin the study</Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </Form>
    </Dialog>
  );
}
