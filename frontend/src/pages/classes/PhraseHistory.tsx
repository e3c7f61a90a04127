import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { chance, score } from "../../components/figures";
import { SortedTable, type Column } from "../../components/SortedTable";

type Phrase = Schemas["PhraseView"];
type Props = { phrases: Phrase[]; onUse: (phrase: string, threshold: number | null) => void };

/** The same words with the same line are one row: the newest figures, and whatever was asked or accepted before. */
export function once(phrases: Phrase[]): Phrase[] {
  const found = new Map<string, Phrase>();
  for (const one of phrases) {
    const key = JSON.stringify([one.phrase, one.threshold === null ? null : one.threshold.toFixed(6), one.by]);
    const newer = found.get(key);
    found.set(key, newer ? { ...newer, confirmed_score: newer.confirmed_score ?? one.confirmed_score, p_value: newer.p_value ?? one.p_value, slice_id: newer.slice_id ?? one.slice_id } : one);
  }
  return [...found.values()];
}

/** All phrases of this class so far; a phrase can be used again. */
export function PhraseHistory({ phrases, onUse }: Props) {
  const rows = useMemo(() => once(phrases), [phrases]);
  const columns: Column<Phrase>[] = [
    { key: "phrase", title: "Words", order: (row) => row.phrase, cell: (row) => <button type="button" className="link" onClick={() => onUse(row.phrase, row.threshold)} aria-label={`Use “${row.phrase}” again`}>{row.phrase}</button> },
    { key: "score", title: "Error Score", isNumber: true, order: (row) => row.score ?? -2, cell: (row) => score(row.score) },
    { key: "held", title: "Held out", isNumber: true, order: (row) => row.held_out_score ?? -2, cell: (row) => score(row.held_out_score) },
    { key: "checked", title: "Checked", isNumber: true, order: (row) => row.p_value ?? 2, cell: (row) => (row.p_value === null ? "–" : `${score(row.confirmed_score)} (p ${chance(row.p_value)})`) },
    { key: "accepted", title: "Accepted", order: (row) => (row.slice_id ? 0 : 1), cell: (row) => (row.slice_id ? "yes" : "") },
    { key: "by", title: "By", order: (row) => row.by, cell: (row) => row.by },
  ];
  return (
    <Card title="Words tried so far">
      {rows.length === 0 ? <p className="quiet">None yet. Press Enter to keep what you typed.</p> : (
        <SortedTable rows={rows} columns={columns} rowKey={(row) => row.phrase_id} caption="Words tried so far, newest first" />
      )}
    </Card>
  );
}
