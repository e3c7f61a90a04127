import { Link } from "wouter";
import { chance, counted, percent, points, range, score } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import type { Column } from "../../components/SortedTable";
import type { SliceLine } from "./sliceFilters";
import { MemberStrip } from "./MemberStrip";
import { VerdictBadge } from "./VerdictBadge";

/** Return the columns of the table of slices; depths indent what lies inside another one. */
export function sliceColumns(depths: ReadonlyMap<string, number> = new Map()): Column<SliceLine>[] {
  return [
    { key: "title", title: "Slice", cell: (line) => titleCell(line, depths.get(line.slice_id) ?? 0), order: (line) => line.title },
    { key: "verdict", title: "Verdict", cell: (line) => <VerdictBadge line={line} />, order: (line) => line.verdict_words },
    { key: "rate", title: "Fails", isNumber: true, hint: "Failure rate of members with its 95 % interval; the dark mark is the rest of the class", cell: rateCell, order: (line) => line.inside?.value ?? null },
    { key: "gap", title: "Gap", isNumber: true, hint: "Percentage points above the rest of the class; for confirmed slices allowing for the fact that only large gaps are confirmed", cell: gapCell, order: (line) => line.gap },
    { key: "n", title: "Samples", isNumber: true, hint: "Members among the samples it was measured on", cell: (line) => (line.inside ? counted(line.inside.total) : "–"), order: (line) => line.inside?.total ?? null },
    { key: "coverage", title: "Of all failures", isNumber: true, hint: "Its share of all failures, of all classes", cell: (line) => (line.coverage === null ? "–" : percent(line.coverage)), order: (line) => line.coverage },
    { key: "q", title: "q", isNumber: true, hint: "Chance of such a gap if there were none (p), corrected for all that was tested together (q)", cell: chanceCell, order: (line) => line.q_value },
    { key: "cause", title: "Cause", cell: (line) => <span title={line.cause_words}>{line.cause || "–"}</span>, order: (line) => line.cause || null },
    { key: "method", title: "Found by", cell: (line) => line.accepted_by ? <>{line.method}<span className="quiet slice-below">{line.accepted_by}</span></> : line.method, order: (line) => line.method },
    { key: "witnesses", title: "Witnesses", hint: "Who else found it, and what second witnesses say of its words", cell: witnessCell, order: (line) => line.also_found.length + line.witnesses.length },
  ];
}

/** Return the column in which two slices are picked to be seen side by side. */
export function pickColumn(picked: string[], pick: (id: string) => void): Column<SliceLine> {
  const cell = (line: SliceLine) => <input type="checkbox" aria-label={`Pick ${line.title}`} checked={picked.includes(line.slice_id)} onChange={() => pick(line.slice_id)} />;
  return { key: "pick", title: "", hint: "Pick two to see them side by side", cell };
}

function gapCell(line: SliceLine) {
  if (line.gap === null) return "–";
  return <>{points(line.gap)}<span className="quiet slice-below">rest {percent(line.outside?.value)}</span></>;
}

function chanceCell(line: SliceLine) {
  if (line.q_value === null) return "–";
  return <>{chance(line.q_value)}<span className="quiet slice-below">p {chance(line.p_value)}</span></>;
}

function titleCell(line: SliceLine, depth: number) {
  return (
    <div style={{ paddingInlineStart: `${1.25 * depth}rem` }}>
      {depth > 0 && <span aria-hidden="true">↳ </span>}
      <Link href={`/slices/${line.slice_id}`} className="slice-title">{line.title}</Link>
      <MemberStrip sliceId={line.slice_id} />
      {!line.words && line.nearest_words.length > 0 && <span className="quiet slice-below">not sure: {line.nearest_words.join(", ")}</span>}
      {line.is_doubtful && <span className="slice-below slice-doubt">words doubtful</span>}
      {line.has_suspect_labels && <span className="slice-below slice-doubt">look at labels first</span>}
      {line.explained_by && <span className="quiet slice-below">explained by {line.explained_by.title}</span>}
      {line.stands_for && <span className="quiet slice-below">same members as {line.stands_for.title} ({line.stands_for.method})</span>}
      {line.dismissed && <span className="quiet slice-below">{line.dismissed.by}: {line.dismissed.reason}</span>}
    </div>
  );
}

function rateCell(line: SliceLine) {
  if (!line.inside?.total) return "–";
  return (
    <div className="slice-rate">
      <span>{percent(line.inside.value)} <span className="quiet">{range(line.inside.interval)}</span></span>
      <IntervalBar rate={line.inside.value} interval={line.inside.interval} label="Fails" {...(line.outside?.total ? { other: line.outside.value } : {})} />
    </div>
  );
}

function witnessCell(line: SliceLine) {
  const others = [...new Set(line.also_found.map((other) => other.method))];
  if (!others.length && !line.witnesses.length) return "–";
  return (
    <>
      {others.length > 0 && <span className="slice-below">also {others.join(", ")}</span>}
      {line.witnesses.map((witness) => (
        <span key={witness.name} className="quiet slice-below">{witness.name} {witness.agrees === null ? "cannot tell" : <>{witness.agrees ? "✓" : "✗"}<span className="unseen">{witness.agrees ? "fits" : "does not fit"}</span> {score(witness.score)}</>}</span>
      ))}
    </>
  );
}
