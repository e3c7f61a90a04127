import { Link } from "wouter";
import { chance, percent } from "../../components/figures";
import { CaptionRow } from "./CaptionRow";
import type { Search, Trial } from "./generation";

/** One search: what is proven, with images, and every caption that was tried. */
export function SearchResult({ result, isOpen }: { result: Search; isOpen: boolean }) {
  return (
    <details className="generation-result" open={isOpen}>
      <summary><strong>{result.class_name}</strong>{result.target ? ` confused with ${result.target}` : ""}: {result.findings.length} proven of {result.trials.length} {result.trials.length === 1 ? "caption" : "captions"} <span className="quiet">{result.created.slice(0, 10)}</span></summary>
      <p>{result.headline}</p>
      <TrialRow trial={result.baseline} result={result} />
      {result.findings.map((trial) => <TrialRow key={trial.prompt} trial={trial} result={result} />)}
      {result.trials.length > 0 && <TrialTable result={result} />}
      {[...result.notes, ...result.meaning].map((line) => <p key={line} className="quiet">{line}</p>)}
    </details>
  );
}

function TrialRow({ trial, result }: { trial: Trial; result: Search }) {
  const title = trial.caption ? `“${trial.caption}”` : "Without a caption";
  const labels = Object.keys(trial.wrong_labels);
  const failed = trial.digests.map((digest) => ({ digest, fails: true, answer: labels.length === 1 ? (labels[0] ?? "") : "wrong" }));
  return (
    <CaptionRow title={title} rate={trial.rate} baseline={trial.caption ? result.baseline.rate : null} predictions={trial.wrong_labels} images={failed}>
      {trial.caption && <Link href={`/classes/${encodeURIComponent(result.class_name)}`}>Try “{trial.phrase}” on your own images</Link>}
    </CaptionRow>
  );
}

function TrialTable({ result }: { result: Search }) {
  return (
    <details>
      <summary>Every caption that was tried</summary>
      <div className="table-box" tabIndex={0} role="region" aria-label="Every caption that was tried">
        <table>
          <thead>
            <tr><th scope="col">Caption</th><th scope="col" className="number">Fail</th><th scope="col" className="number">Times as often</th><th scope="col" className="number">False discovery rate</th><th scope="col">Stopped because</th></tr>
          </thead>
          <tbody>
            {result.trials.map((trial, place) => (
              <tr key={`${trial.prompt}${place}`}>
                <th scope="row">{trial.caption}{trial.is_proven && <> <span className="badge confirmed">proven</span></>}</th>
                <td className="number">{percent(trial.rate.value)} <span className="quiet">{trial.rate.count} of {trial.rate.total}</span></td>
                <td className="number">{trial.ratio?.value?.toFixed(1) ?? "–"}</td>
                <td className="number">{chance(trial.q_value)}</td>
                <td>{trial.note || trial.stopped_because}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
