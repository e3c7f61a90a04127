import type { Schemas } from "../../api/client";
import { counted, percent, range } from "../../components/figures";
import { FirstAnswer } from "./FirstAnswer";

type Props = { data: Schemas["OverviewView"]; run: Schemas["RunFacts"] };

/** The first answer; folded under it, the figures behind everything, each with its interval. */
export function BigFigures({ data, run }: Props) {
  const splits = Object.entries(data.splits).map(([split, n]) => `${split} ${counted(n)}`).join(", ");
  const total = Object.values(data.splits).reduce((sum, n) => sum + n, 0);
  return (
    <>
      <FirstAnswer answer={run.answer} />
      <details className="card how-sure">
        <summary>How sure?</summary>
        <p>{run.headline}</p>
        {run.summary.map((sentence) => <p key={sentence}>{sentence}</p>)}
        {run.correction && <p className="quiet">{run.correction}</p>}
        {data.asked.map((sentence) => <p key={sentence} className="quiet">{sentence}</p>)}
        <dl className="figures-row">
          {run.accuracy && <Figure title="Accuracy, as the run recorded it" value={percent(run.accuracy.value)} note={`95 % interval ${range(run.accuracy.interval)}, ${counted(run.accuracy.total)} evaluated`} />}
          {data.discovery && <Figure title="Accuracy on the discovery half" value={percent(data.discovery.value)} note={`95 % interval ${range(data.discovery.interval)}, ${counted(data.discovery.total)} evaluated`} />}
          <Figure title="Confirmed slices" value={counted(run.n_published)} note="proven on samples that took no part in finding them" />
          <Figure title="Samples" value={counted(total)} note={splits} />
          <Figure title="Classes" value={counted(data.n_classes)} note={data.task} />
        </dl>
        <h3>What was examined</h3>
        <dl className="facts">
          <dt>A failure</dt><dd>{run.criterion || data.criterion}</dd>
          <dt>Classifier</dt><dd className="figure">{data.classifier_id || "predictions were given"}</dd>
          <dt>Encoder</dt><dd className="figure">{data.encoder_id || "none: there are no images"}</dd>
          {data.n_unlabelled > 0 && <><dt>Without a label</dt><dd>{counted(data.n_unlabelled)} samples</dd></>}
          <dt>Unreadable, left out</dt><dd>{counted(data.n_quarantined)} samples</dd>
        </dl>
      </details>
    </>
  );
}

/** One large figure. */
function Figure({ title, value, note }: { title: string; value: string; note: string }) {
  return (
    <div className="card">
      <dt>{title}</dt>
      <dd className="big-figure">{value}</dd>
      <dd className="quiet">{note}</dd>
    </div>
  );
}
