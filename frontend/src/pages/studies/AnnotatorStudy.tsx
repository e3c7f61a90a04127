import { useState } from "react";
import { Link } from "wouter";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { PageHead } from "../../components/PageHead";
import { counted } from "../../components/figures";
import { ClassWorkbench } from "../classes/ClassWorkbench";
import { duration } from "./activity";
import { AttentionCheck, Consent } from "./Consent";
import { useFinishing, type Progress, type Study } from "./studyData";
import { Tutorial } from "./tutorial/Tutorial";
import { useActivity } from "./useActivity";

type Props = { study: Study; progress: Progress };

/** The work of somebody who takes part: tutorial, instructions, then class after class. */
export function AnnotatorStudy({ study, progress }: Props) {
  const [hasBegun, setBegun] = useState(progress.n_phrases > 0);
  const [isPast, setPast] = useState(progress.did_tutorial);
  if (!study.is_open) {
    return (
      <PageHead title={study.title}>This study is closed. You said {counted(progress.n_phrases)} phrases; all of them are kept. Thank you.</PageHead>
    );
  }
  if ((study.options.consent || study.options.attention_question) && !progress.agreed) return <Consent study={study} />;
  if (!isPast) return <Tutorial onDone={() => setPast(true)} />;
  if (study.options.attention_question && !progress.has_answered) return <AttentionCheck study={study} />;
  if (!hasBegun) {
    return (
      <>
        <PageHead title={study.title} />
        <Card title="What to do">
          <p className="instructions">{study.instructions || "Say in your own words what the images that the AI got wrong have in common."}</p>
          <p className="quiet">{study.classes.length === 1 ? "One class" : `${study.classes.length} classes`}. Your words, their scores and the time you spend here are kept for the study.</p>
          <div className="row">
            <Button kind="primary" onClick={() => setBegun(true)}>Begin</Button>
            <Link className="button quiet" href={`/studies/${study.study_id}/tutorial`}>See the tutorial again</Link>
          </div>
        </Card>
      </>
    );
  }
  return <ClassByClass study={study} progress={progress} />;
}

/** The classes of a study one by one. */
function ClassByClass({ study, progress }: Props) {
  const firstOpen = study.classes.findIndex((title) => !progress.finished.includes(title));
  const [place, setPlace] = useState(Math.max(0, firstOpen));
  const finishing = useFinishing(study.study_id);
  const title = study.classes[place] ?? "";
  useActivity(study.study_id, title, true);
  const isDone = progress.finished.includes(title);
  const isAllDone = study.classes.every((one) => progress.finished.includes(one));
  const finish = () =>
    finishing.mutate({ class_title: title, is_finished: !isDone }, {
      onSuccess: (own) => {
        const next = study.classes.findIndex((one) => !own.finished.includes(one));
        if (!isDone && next >= 0) setPlace(next);
      },
    });
  return (
    <>
      <PageHead
        title={title}
        aside={<Button kind={isDone ? "plain" : "primary"} onClick={finish} disabled={finishing.isPending}>{isDone ? "Continue with this class" : "I am done with this class"}</Button>}
      >
        {study.title}: class {place + 1} of {study.classes.length}
      </PageHead>
      <div className="study-bar">
        <nav aria-label="Classes of the study">
          <ul>
            {study.classes.map((one, at) => (
              <li key={one}>
                <button type="button" className="chip" aria-current={at === place ? "step" : undefined} onClick={() => setPlace(at)}>
                  {progress.finished.includes(one) ? "✓ " : ""}{one}<span className="unseen">{progress.finished.includes(one) ? ", done" : ""}</span>
                </button>
              </li>
            ))}
          </ul>
        </nav>
        <p className="quiet figure">{duration(progress.seconds)} at work · {counted(progress.n_phrases)} {progress.n_phrases === 1 ? "phrase" : "phrases"}</p>
      </div>
      {finishing.error && <ErrorNote error={finishing.error} />}
      {isAllDone && <p role="status" className="note">You are done with all classes. Thank you. You can still continue with any of them.</p>}
      <ClassWorkbench key={title} title={title} studyId={study.study_id} />
    </>
  );
}
