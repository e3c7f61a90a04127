import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { chance, percent, range } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";

type Rate = Schemas["Share"];

function RateLine({ rate, words, isInside }: { rate: Rate; words: string; isInside: boolean }) {
  return (
    <div className="slice-rate-line">
      <p><span className={isInside ? "big-figure" : "slice-middle-figure"}>{percent(rate.value)}</span> {words}</p>
      <IntervalBar rate={rate.value} interval={rate.interval} label={words} kind={isInside ? "wrong" : "quiet"} />
      <p className="quiet">{rate.count} of {rate.total} fail; 95 % interval {range(rate.interval)}</p>
    </div>
  );
}

/** How a slice was proven: rates inside and outside on samples that took no part in finding it. */
export function EvidenceCard({ slice }: { slice: Schemas["SlicePageView"] }) {
  const { line, words } = slice;
  if (!line.inside || !line.outside) {
    return <Card title="Evidence"><p>It was not measured yet. On the samples to look at, {slice.looked_at_inside.count} of {slice.looked_at_inside.total} members fail.</p></Card>;
  }
  return (
    <Card title="Evidence">
      <div className="slice-rate-pair">
        <RateLine rate={line.inside} words="of members fail" isInside />
        <RateLine rate={line.outside} words="of the rest of the class fail" isInside={false} />
      </div>
      <p>{words.effect}</p>
      <p>{words.proof}</p>
      <dl className="slice-facts">
        <div><dt>p</dt><dd>{chance(line.p_value)}</dd></div>
        <div><dt>q</dt><dd>{chance(line.q_value)}</dd></div>
        <div><dt>tested together</dt><dd>{line.n_tested}</dd></div>
        {words.strength && <div><dt>strength</dt><dd>{words.strength}</dd></div>}
      </dl>
      {line.verdict !== "confirmed" && <p className="note">{line.verdict_words}.</p>}
    </Card>
  );
}
