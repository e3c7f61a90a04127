import type { SliceLine } from "./sliceFilters";

/** Return a line of the table for tests. */
export function line(change: Partial<SliceLine>): SliceLine {
  return {
    slice_id: "0", title: "apple: green", class_title: "apple", method: "directions", words: "green", is_doubtful: false, nearest_words: [], inside: null, outside: null,
    gap: null, p_value: null, q_value: null, n_tested: 0, verdict: "confirmed", verdict_words: "confirmed", cause: "rare in training", cause_words: "",
    witnesses: [], also_found: [], stands_for: null, strength: null, accepted_by: null, dismissed: null, explained_by: null, has_suspect_labels: false,
    kind: "", parent: "", coverage: null, excess: null, ...change,
  };
}
