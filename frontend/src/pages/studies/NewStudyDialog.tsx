import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { askAgain, named } from "../../api/askAgain";
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

const OPTIONS = { shows_suggestions: true, consent: "", attention_question: "", groups: "" };

/** Title, classes and instructions of a new study. */
export function NewStudyDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [, go] = useLocation();
  const [title, setTitle] = useState("");
  const [instructions, setInstructions] = useState(INSTRUCTIONS);
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [options, setOptions] = useState(OPTIONS);
  const [answer, setAnswer] = useState("");
  const colours = useQuery({ queryKey: ["map colourings"], queryFn: () => unwrap(api.GET("/api/map/colourings")) });
  const columns = (colours.data?.colourings ?? []).filter((one) => one.by.startsWith("column:")).map((one) => one.title);
  const classes = useQuery({ queryKey: ["classes"], queryFn: () => unwrap(api.GET("/api/classes")) });
  const ranked = classes.data?.classes ?? [];
  const promising = ranked.filter((one) => one.is_promising);
  const proposed = (promising.length ? promising : ranked).slice(0, N_CHOSEN).map((one) => one.title);
  const taken = chosen ?? proposed;
  const create = useMutation({
    mutationFn: () => unwrap(api.POST("/api/studies", { body: { title, instructions, classes: taken, options, attention_answer: answer } })),
    onSuccess: (study) => { void askAgain(queries, named("studies")); go(`/studies/${study.study_id}`); },
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
        <label className="study-switch"><input type="checkbox" checked={options.shows_suggestions} onChange={(event) => setOptions({ ...options, shows_suggestions: event.target.checked })} /> Offer words with their scores. Without, nobody is shown anything scored before typing.</label>
        <details>
          <summary>Consent, attention check, given groups</summary>
          <div className="stack">
            <label className="field"><span>Consent: what people agree to first (empty: nothing is asked)</span><textarea rows={3} value={options.consent} onChange={(event) => setOptions({ ...options, consent: event.target.value })} maxLength={20_000} /></label>
            <div className="row">
              <label className="field study-wide"><span>Attention check: a question</span><input value={options.attention_question} onChange={(event) => setOptions({ ...options, attention_question: event.target.value })} maxLength={2000} placeholder="To show that you read this, write the word “green”." /></label>
              <label className="field"><span>Its answer</span><input value={answer} onChange={(event) => setAnswer(event.target.value)} maxLength={500} autoComplete="off" /></label>
            </div>
            <label className="field"><span>Given groups: one column, the same for everybody; never shown to those who take part</span>
              <select value={options.groups} onChange={(event) => setOptions({ ...options, groups: event.target.value })}>
                <option value="">none</option>
                {columns.map((name) => <option key={name}>{name}</option>)}
              </select>
            </label>
          </div>
        </details>
        {create.error && <ErrorNote error={create.error} />}
        <div className="row">
          <Button kind="primary" type="submit" disabled={!title.trim() || taken.length === 0 || create.isPending}>Begin the study</Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </Form>
    </Dialog>
  );
}
