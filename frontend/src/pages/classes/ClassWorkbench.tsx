import { useEffect, useId, useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import { isStatic } from "../../api/static";
import { VIEWER } from "../../app/hashLocation";
import { useSession, useNoun } from "../../app/session";
import { ErrorNote } from "../../components/ErrorNote";
import { Form } from "../../components/Form";
import { Loaded } from "../../components/Loaded";
import { useClassColumns, useHistory, usePhraseActions, usePhraseScore, useSuggestions, type ClassColumns, type Source } from "./classData";
import "./classes.css";
import { PhraseActions } from "./PhraseActions";
import { PhraseHistory } from "./PhraseHistory";
import { PhraseResult } from "./PhraseResult";
import { Samples } from "./Samples";
import { Separation } from "./separation";
import { Suggestions } from "./Suggestions";

type Props = { title: string; studyId?: string };

const WRITTEN_AFTER = 400;

/** The whole work area of one class: images, a sentence to complete, and what comes of it. */
export function ClassWorkbench({ title, studyId }: Props) {
  const columns = useClassColumns(title, studyId);
  return (
    <Loaded query={columns} what={`the images of ${title}`}>
      {(data) => <Workbench key={`${data.title} ${data.tables}`} data={data} {...(studyId === undefined ? {} : { studyId })} />}
    </Loaded>
  );
}

/** The same, once the samples are there. */
function Workbench({ data, studyId }: { data: ClassColumns; studyId?: string }) {
  const session = useSession();
  const mayWork = !session.is_read_only && session.person.role !== "viewer";
  const [asked, setAsked] = useSearchParams();
  const [phrase, setPhrase] = useState(asked.get("phrase")?.slice(0, 300) ?? "");
  const [own, setOwn] = useState<number | null>(() => lineOf(asked.get("line")));
  const [clicked, setClicked] = useState<string | null>(null);
  const said = phrase.trim();
  const answer = usePhraseScore(data.title, phrase, studyId);
  const suggestions = useSuggestions(data.title, studyId);
  const history = useHistory(data.title, studyId);
  const noun = useNoun();
  const actions = usePhraseActions(data.title, studyId);
  const found = said ? answer.data : undefined;
  const separation = useMemo(() => (found ? new Separation(found.values, data.failed) : null), [found, data.failed]);
  const threshold = own ?? found?.threshold ?? null;
  const parted = useMemo(() => separation?.at(threshold) ?? null, [separation, threshold]);
  const isOld = found?.phrase !== said;
  useInAddress(said, own, asked, setAsked);
  const { check, accept } = actions;
  const [forgetCheck, forgetAccept] = [check.reset, accept.reset];
  useEffect(() => { forgetCheck(); forgetAccept(); }, [said, own, forgetCheck, forgetAccept]);

  const type = (words: string, line: number | null = null) => { setPhrase(words); setOwn(line); if (!words.trim()) setClicked(null); };
  const keep = (words: string, line: number | null, from = clicked) => { if (mayWork && words) actions.keep.mutate({ phrase: words, threshold: line, source: sourceOf(words, from) }); };
  const use = (words: string) => { type(words); setClicked(words); keep(words, null, words); };
  const step = { phrase: said, threshold: own, source: sourceOf(said, clicked) };
  return (
    <div className="stack workbench">
      <section className="card" aria-label="Say what goes wrong">
        {isStatic() ? <StaticSentence phrase={said} /> : <Sentence phrase={phrase} onType={type} onKeep={() => keep(said, own)} />}
        {suggestions.data && <Suggestions found={suggestions.data} onUse={use} />}
        {said && answer.isError && <ErrorNote error={answer.error} />}
        {found && separation && parted && (
          <PhraseResult answer={found} separation={separation} threshold={threshold} parted={parted} isOwn={own !== null} isOld={isOld} onMove={setOwn} onReset={() => setOwn(null)} />
        )}
        {!said && !isStatic() && <p className="quiet">Compare the wrong {noun} with the right ones below. What do the wrong ones have that the right ones have not? A word or two will do.</p>}
      </section>
      <Samples data={data} separation={separation} parted={parted} phrase={found?.phrase ?? ""} />
      {mayWork && found && parted && (
        <PhraseActions
          canAccept={parted.inside > 0 && parted.outside > 0}
          isStale={isOld}
          isInStudy={studyId !== undefined}
          left={check.data?.left ?? history.data?.left ?? ""}
          check={{ isPending: check.isPending, error: check.error, data: check.data, run: () => check.mutate(step) }}
          accept={{ isPending: accept.isPending, error: accept.error, data: accept.data, run: () => accept.mutate(step) }}
        />
      )}
      {history.data && (mayWork || history.data.phrases.length > 0) && <PhraseHistory phrases={history.data.phrases} onUse={type} />}
    </div>
  );
}

/** Return where words come from: typed, a suggestion as it was clicked, or one that was edited. */
export function sourceOf(words: string, clicked: string | null): Source {
  if (clicked === null) return "own";
  return words === clicked ? "suggestion" : "edited";
}

/** Return the threshold that an address names, null if it names none. */
function lineOf(text: string | null): number | null {
  const line = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(line) ? line : null;
}

/** Write words and threshold into the address as soon as they stay for a moment: reload, Back and a copied link show them again. */
function useInAddress(phrase: string, line: number | null, asked: URLSearchParams, setAsked: ReturnType<typeof useSearchParams>[1]): void {
  const written = phrase && line !== null ? String(line) : null;
  const isThere = asked.get("phrase") === (phrase || null) && asked.get("line") === written;
  useEffect(() => {
    if (isThere) return undefined;
    const timer = window.setTimeout(() => {
      // An image that is shown above the page has the address to itself.
      if (window.location.hash.startsWith(`#${VIEWER}`)) return;
      setAsked((old) => {
        const made = new URLSearchParams(old);
        made.delete("phrase");
        made.delete("line");
        if (phrase) made.set("phrase", phrase);
        if (written !== null) made.set("line", written);
        return made;
      }, { replace: true });
    }, WRITTEN_AFTER);
    return () => window.clearTimeout(timer);
  }, [phrase, written, isThere, setAsked]);
}

/** The sentence on exported pages: only words that were scored before can be chosen. */
function StaticSentence({ phrase }: { phrase: string }) {
  return (
    <>
      <p>The AI is often wrong on {useNoun()} that have <strong>{phrase || "…"}</strong></p>
      <p className="quiet">Typing needs <code>weakspot serve</code>; words below were scored before and can be chosen.</p>
    </>
  );
}

type SentenceProps = { phrase: string; onType: (words: string) => void; onKeep: () => void };

/** The sentence with the gap that people fill. */
function Sentence({ phrase, onType, onKeep }: SentenceProps) {
  const id = useId();
  const submit = () => onKeep();
  return (
    <Form className="sentence" onSubmit={submit}>
      <label htmlFor={id}>The AI is often wrong on {useNoun()} that have</label>
      <input id={id} type="text" value={phrase} onChange={(event) => onType(event.target.value)} maxLength={300} autoComplete="off" spellCheck={false} placeholder="…" aria-describedby={`${id}-help`} />
      <span id={`${id}-help`} className="unseen">The score changes as you type. Press Enter to keep the words in the history.</span>
    </Form>
  );
}
