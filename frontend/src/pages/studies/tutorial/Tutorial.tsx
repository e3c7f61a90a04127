import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { askAgain, named } from "../../../api/askAgain";
import { api, unwrap, type Schemas } from "../../../api/client";
import { Button } from "../../../components/Button";
import { Form } from "../../../components/Form";
import { ErrorNote } from "../../../components/ErrorNote";
import { Loaded } from "../../../components/Loaded";
import { PageHead } from "../../../components/PageHead";
import { ScoreDial } from "../../classes/ScoreDial";
import { Separation } from "../../classes/separation";
import { ThresholdHistogram } from "../../classes/ThresholdHistogram";
import "../../classes/classes.css";
import { PlantedImages } from "./PlantedImages";
import { isDone, STEPS } from "./steps";
import "./tutorial.css";

type World = Schemas["TutorialWorld"];

/** Two minutes on coloured squares, one thing at a time. */
export function Tutorial({ onDone }: { onDone: () => void }) {
  const queries = useQueryClient();
  const world = useQuery({ queryKey: ["tutorial"], queryFn: () => unwrap(api.GET("/api/tutorial")), staleTime: Infinity });
  const finish = useMutation({
    mutationFn: () => unwrap(api.POST("/api/tutorial/done")),
    onSuccess: async () => {
      await askAgain(queries, named("studies"));
      onDone();
    },
  });
  return (
    <>
      <PageHead title="Learn it in two minutes" aside={<Button kind="quiet" onClick={() => finish.mutate()} disabled={finish.isPending}>Skip</Button>}>
        Coloured squares, and an AI with a weak spot. Find it.
      </PageHead>
      {finish.error && <ErrorNote error={finish.error} />}
      <Loaded query={world} what="the tutorial">{(found) => <Lesson world={found} onFinish={() => finish.mutate()} />}</Loaded>
    </>
  );
}

/** The steps, once the images are there. */
function Lesson({ world, onFinish }: { world: World; onFinish: () => void }) {
  const [place, setPlace] = useState(0);
  const [phrase, setPhrase] = useState("");
  const [own, setOwn] = useState<number | null>(null);
  const [hasMoved, setMoved] = useState(false);
  const ask = useMutation({ mutationFn: (words: string) => unwrap(api.POST("/api/tutorial/phrase", { body: { phrase: words } })) });
  const step = STEPS[place] ?? STEPS[0]!;
  const answer = ask.data;
  const failed = useMemo(() => Uint8Array.from(world.is_wrong, Number), [world]);
  const separation = useMemo(() => (answer ? new Separation(Float32Array.from(answer.similarities), failed) : null), [answer, failed]);
  const threshold = own ?? answer?.threshold ?? null;
  const parted = separation?.at(threshold) ?? null;
  const isReady = isDone(step.key, { score: answer?.score ?? null, hasMoved });
  const words = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (step.key === "say" || step.key === "reword") words.current?.focus();
    else box.current?.focus();
  }, [step.key]);
  const say = (text: string) => { setPhrase(text); setOwn(null); if (text.trim()) ask.mutate(text.trim()); };
  const submit = () => say(phrase);
  const next = () => (place + 1 < STEPS.length ? setPlace(place + 1) : onFinish());
  const canType = step.key === "say" || step.key === "reword";
  return (
    <div className="stack">
      <section ref={box} tabIndex={-1} className="card lesson" aria-labelledby="lesson-title" aria-live="polite">
        <ol className="lesson-steps" aria-label="Steps">
          {STEPS.map((one, at) => <li key={one.key} className={at < place ? "past" : undefined} aria-current={at === place ? "step" : undefined}><span className="unseen">{one.title}</span></li>)}
        </ol>
        <h2 id="lesson-title">{place + 1}. {step.title}</h2>
        <p className="lesson-words">{step.words} {step.hint && <button type="button" className="chip" onClick={() => say(step.hint ?? "")}>{step.hint}</button>}</p>
        <div className="row">
          <Button kind="primary" onClick={next} disabled={!isReady}>{step.key === "accept" ? "Accept" : "Next"}</Button>
          {place > 0 && <Button kind="quiet" onClick={() => setPlace(place - 1)}>Back</Button>}
          {canType && answer && <span className="quiet" role="status">{answer.advice}</span>}
        </div>
      </section>
      {place > 0 && (
        <section className="card" aria-label="Your words">
          <Form className="sentence" onSubmit={submit}>
            <label htmlFor="lesson-phrase">The AI is often wrong on images that have</label>
            <input id="lesson-phrase" ref={words} value={phrase} onChange={(event) => setPhrase(event.target.value)} maxLength={300} autoComplete="off" spellCheck={false} readOnly={!canType} placeholder="…" />
            {canType && <Button type="submit" disabled={!phrase.trim()}>Try it</Button>}
          </Form>
          {ask.error && <ErrorNote error={ask.error} />}
          {answer && separation && parted && place > 0 && (
            <div className="lesson-result">
              <div>
                <ScoreDial title="Error Score" value={parted.score} />
                <p className="quiet">“{answer.phrase}” fits {parted.wrongInside} wrong and {parted.rightInside} right images.</p>
              </div>
              {place >= 3 && <ThresholdHistogram separation={separation} threshold={threshold} parted={parted} onMove={(value) => { setOwn(value); setMoved(step.key === "drag" || hasMoved); }} />}
            </div>
          )}
        </section>
      )}
      <PlantedImages world={world} similarities={answer?.similarities ?? null} threshold={place >= 3 ? threshold : null} />
    </div>
  );
}
