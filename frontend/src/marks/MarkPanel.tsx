import { useEffect, useRef, useState } from "react";
import type { Schemas } from "../api/client";
import { Button } from "../components/Button";
import { ErrorNote } from "../components/ErrorNote";
import { moment } from "../components/figures";
import { MarkForm, type Saying } from "./MarkForm";
import { markWords, useMarking, useMarksOf, useMayMark, useTakingBack, type Said } from "./useMarks";

type Facts = Schemas["SampleFacts"];
const KEYS: Record<string, Saying> = { w: "label", n: "note", t: "tag" };

/** What people said of one image, and a place to say more: by button, or with W, U, N, T. */
export function MarkPanel({ facts }: { facts: Facts }) {
  const mayMark = useMayMark();
  const { data, error } = useMarksOf(facts.sample_id);
  const marking = useMarking();
  const taking = useTakingBack();
  const [saying, setSaying] = useState<Saying>(null);
  const meant = { rows: [facts.row], tables: facts.tables };
  const say = (said: Said) => marking.mutate({ meant, said }, { onSuccess: () => setSaying(null) });
  useMarkKeys(mayMark, setSaying, () => say({ kind: "unusable" }));
  useEffect(() => setSaying(null), [facts.sample_id]);
  const marks = data?.marks ?? [];
  if (error || (!mayMark && marks.length === 0)) return null;
  return (
    <section aria-label="Marks" className="mark-panel">
      {marks.length > 0 && (
        <ul className="plain-list mark-list">
          {marks.map((mark) => (
            <li key={`${mark.kind} ${mark.text}`}>
              <span>⚑ {markWords(mark)} <small className="quiet">{mark.by}, {moment(mark.time)}</small></span>
              {mayMark && <Button kind="quiet" aria-label={`Take back: ${markWords(mark)}`} disabled={taking.isPending} onClick={() => taking.mutate({ meant, kind: mark.kind, text: mark.text })}>✕</Button>}
            </li>
          ))}
        </ul>
      )}
      {mayMark && saying === null && (
        <div className="row" role="group" aria-label="Mark this image">
          <Button onClick={() => setSaying("label")} aria-keyshortcuts="w">Label is wrong</Button>
          <Button onClick={() => say({ kind: "unusable" })} aria-keyshortcuts="u">Unusable</Button>
          <Button onClick={() => setSaying("note")} aria-keyshortcuts="n">Note</Button>
          <Button onClick={() => setSaying("tag")} aria-keyshortcuts="t">Tag</Button>
        </div>
      )}
      <MarkForm key={`${facts.sample_id} ${saying}`} saying={saying} isPending={marking.isPending} onSay={say} onCancel={() => setSaying(null)} />
      {marking.isError && <ErrorNote error={marking.error} />}
      {taking.isError && <ErrorNote error={taking.error} />}
    </section>
  );
}

function useMarkKeys(isWanted: boolean, onSaying: (saying: Saying) => void, onUnusable: () => void): void {
  const now = useRef({ onSaying, onUnusable });
  useEffect(() => {
    now.current = { onSaying, onUnusable };
  });
  useEffect(() => {
    if (!isWanted) return undefined;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest("input, select, textarea")) return;
      if (event.key === "u") now.current.onUnusable();
      else if (KEYS[event.key]) now.current.onSaying(KEYS[event.key] ?? null);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [isWanted]);
}
