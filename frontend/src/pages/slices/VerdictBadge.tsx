import { standingOf, type SliceLine } from "./sliceFilters";

const SHORT: Record<string, string> = {
  confirmed: "confirmed",
  "not confirmed": "not confirmed",
  "too few samples": "too few samples",
  "same as another slice": "same as another",
  "cannot be tested": "cannot be tested",
  "": "not tested yet",
};

/** What the test of a slice said, in two words; what people decided comes first. */
export function VerdictBadge({ line }: { line: SliceLine }) {
  if (standingOf(line) === "dismissed") return <span className="badge" title={line.verdict_words}>dismissed</span>;
  const isFinding = line.verdict === "confirmed";
  return (
    <span className={`badge ${isFinding ? "confirmed" : ""}`} title={line.verdict_words}>
      {SHORT[line.verdict] ?? line.verdict}{isFinding && line.explained_by ? ", explained" : ""}
    </span>
  );
}
