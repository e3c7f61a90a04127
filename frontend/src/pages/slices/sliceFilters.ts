/** Which slices of the table are shown. */
import type { Schemas } from "../../api/client";

export type SliceLine = Schemas["SliceLine"];
export type Standing = "confirmed" | "unconfirmed" | "dismissed";
export type SliceFilter = { standing: Standing | "standing" | "findings" | "all"; method: string; title: string; text: string };

export const NO_FILTER: SliceFilter = { standing: "standing", method: "", title: "", text: "" };

/** Return where a slice stands: what people dismissed is dismissed, whatever its test said. */
export function standingOf(line: SliceLine): Standing {
  if (line.dismissed) return "dismissed";
  return line.verdict === "confirmed" ? "confirmed" : "unconfirmed";
}

/** Return the slices that a filter lets through, in their order. */
export function chosenSlices(lines: SliceLine[], filter: SliceFilter): SliceLine[] {
  const wanted = filter.text.trim().toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return lines.filter((line) => {
    const standing = standingOf(line);
    if (filter.standing === "findings") {
      if (line.kind !== "finding" && line.kind !== "worse") return false;
    } else if (filter.standing === "standing" ? standing === "dismissed" : filter.standing !== "all" && standing !== filter.standing) return false;
    if (filter.method && line.method !== filter.method) return false;
    if (filter.title && line.class_title !== filter.title) return false;
    const said = `${line.title} ${line.method} ${line.cause} ${line.verdict_words} ${line.dismissed?.reason ?? ""}`.toLocaleLowerCase();
    return wanted.every((word) => said.includes(word));
  });
}

/** Return the different values of a column, in the order of the alphabet. */
export function choices(lines: SliceLine[], value: (line: SliceLine) => string): string[] {
  return [...new Set(lines.map(value))].sort((one, two) => one.localeCompare(two));
}
