import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useNoun } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { chance, counted, percent, range, score } from "../../components/figures";

type Step = { isPending: boolean; error: Error | null };
type Props = {
  canAccept: boolean;
  isStale: boolean;
  check: Step & { data: Schemas["PhraseCheck"] | undefined; run: () => void };
  accept: Step & { data: Schemas["AcceptedPhrase"] | undefined; run: () => void };
  isInStudy: boolean;
  left: string;
};

/** Check on images that nobody has looked at, or make the words a slice; each with what it means. */
export function PhraseActions({ canAccept, isStale, check, accept, isInStudy, left }: Props) {
  const noun = useNoun();
  const isBusy = check.isPending || accept.isPending;
  return (
    <Card title="Decide" className="decide">
      <div className="phrase-actions">
        <div className="action">
          <Button onClick={check.run} disabled={isStale || isBusy}>{check.isPending ? "Checking …" : `Check on held-out ${noun}`}</Button>
          <p className="quiet">Tests on {noun} that nobody has looked at. Every test is counted, so test only what you mean. {left}</p>
        </div>
        <div className="action">
          <Button kind="primary" onClick={accept.run} disabled={isStale || isBusy || !canAccept}>{accept.isPending ? "Accepting …" : "Accept as a slice"}</Button>
          <p className="quiet">Keeps the {noun} that fit as a finding, tested on the held-out {noun}, ready to be repaired.</p>
        </div>
        <div aria-live="polite" className="action-results">
          {check.error && <ErrorNote error={check.error} />}
          {check.data && <CheckResult found={check.data} />}
          {accept.error && <ErrorNote error={accept.error} />}
          {accept.data && <Finding found={accept.data} isInStudy={isInStudy} />}
        </div>
      </div>
    </Card>
  );
}

/** What the held-out images said. */
function CheckResult({ found }: { found: Schemas["PhraseCheck"] }) {
  const noun = useNoun();
  const { inside, outside } = found.confirmation;
  const holds = found.fit === "good" || found.fit === "separates but does not match";
  return (
    <div className={holds ? "note" : "note warn"}>
      <p>
        <strong>{holds ? `It holds on held-out ${noun}.` : `It does not hold on held-out ${noun} so far.`}</strong>{" "}
        Where “{found.phrase}” fits, the AI is wrong on {inside.count} of {counted(inside.total)} ({percent(inside.value)}, interval {range(inside.interval)});
        elsewhere on {outside.count} of {counted(outside.total)} ({percent(outside.value)}, interval {range(outside.interval)}).
      </p>
      <p className="quiet">
        Error Score there {score(found.confirmation.error_score)}. Probability of such a difference by chance: {chance(found.p_value)}, {" "}
        or {chance(found.p_after_looks)} over everything that these {noun} were asked.
      </p>
    </div>
  );
}

/** The finding in words, with a way to its slice. */
function Finding({ found, isInStudy }: { found: Schemas["AcceptedPhrase"]; isInStudy: boolean }) {
  return (
    <div className={found.verdict === "confirmed" ? "note" : "note warn"}>
      <p><strong>Accepted: {found.title}.</strong> {found.words.charAt(0).toUpperCase() + found.words.slice(1)}.</p>
      {found.sentences.map((sentence) => <p key={sentence}>{sentence}</p>)}
      {!isInStudy && (
        <p>
          <Link href={`/slices/${found.slice_id}`}>Open this slice</Link>
          {found.same_as && <> · <Link href={`/slices/${found.same_as}`}>Open the slice that is nearly the same</Link></>}
        </p>
      )}
    </div>
  );
}
