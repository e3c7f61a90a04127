import { useState } from "react";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { Form } from "../../components/Form";
import { PageHead } from "../../components/PageHead";
import { useConsent, type Study } from "./studyData";

/** What a study is about and what is kept; nothing is shown before somebody agrees. */
export function Consent({ study }: { study: Study }) {
  const { agree } = useConsent(study.study_id);
  return (
    <>
      <PageHead title={study.title} />
      <Card title="Before you take part">
        {study.options.consent && <p className="instructions">{study.options.consent}</p>}
        {!study.options.consent && <p>Your words, their scores and the time you spend here are kept for the study.</p>}
        {agree.error && <ErrorNote error={agree.error} />}
        <div className="row">
          <Button kind="primary" onClick={() => agree.mutate()} disabled={agree.isPending}>I agree and take part</Button>
          <span className="quiet">If you do not, close this page; nothing is kept.</span>
        </div>
      </Card>
    </>
  );
}

/** One question, to see who reads; whether the answer is right is not told. */
export function AttentionCheck({ study }: { study: Study }) {
  const { answer } = useConsent(study.study_id);
  const [said, setSaid] = useState("");
  return (
    <>
      <PageHead title={study.title} />
      <Card title="One question first">
        <Form className="stack" onSubmit={() => { if (said.trim()) answer.mutate(said); }}>
          <label className="field"><span>{study.options.attention_question}</span><input value={said} maxLength={500} autoComplete="off" onChange={(event) => setSaid(event.target.value)} /></label>
          {answer.error && <ErrorNote error={answer.error} />}
          <div className="row"><Button kind="primary" type="submit" disabled={!said.trim() || answer.isPending}>Go on</Button></div>
        </Form>
      </Card>
    </>
  );
}
