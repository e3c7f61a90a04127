import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import { allBut, askAgain } from "../../api/askAgain";
import { api, unwrap, type Schemas } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, percent, range, score } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { Loaded } from "../../components/Loaded";
import { ImageTile } from "../../components/ImageTile";
import { MarkBar } from "../../marks/MarkBar";

const MOST_PICKED = 20_000;
type Props = { rows: number[]; mapId: string; tables: string; onOpen: (row: number) => void; onClear: () => void };
type Selection = Schemas["MapSelectionView"];

/** What selected points have in common, and what can be made of them. */
export function SelectionPanel({ rows, mapId, tables, onOpen, onClear }: Props) {
  const [title, setTitle] = useState<string | null>(null);
  useEffect(() => setTitle(null), [rows]);
  const query = useQuery({
    queryKey: ["map", "selection", mapId, rows, title],
    queryFn: () => unwrap(api.POST("/api/map/selection", { body: { rows, title } })),
    staleTime: Infinity,
    gcTime: 60_000,
    placeholderData: (former, before) => (before?.queryKey[3] === rows ? former : undefined),
  });
  return (
    <Card title="Selected samples" aside={<Button kind="quiet" onClick={onClear}>Clear</Button>}>
      {rows.length <= MOST_PICKED && <MarkBar meant={{ rows, tables }} count={rows.length} noun="samples" isOnMap />}
      <Loaded query={query} what={`what ${counted(rows.length)} samples have in common`}>
        {(found) => (
          <div className="stack">
            <p role="status">
              {counted(found.n_selected)} samples of the discovery half are selected
              {found.n_surroundings > 0 && `, and ${counted(found.n_surroundings)} training or pool samples, of which nothing is said`}.
            </p>
            {found.note && <p className="note">{found.note}</p>}
            {found.classes.length > 0 && <Classes found={found} onTitle={setTitle} />}
            {found.classes.length > 0 && <Common found={found} tables={tables} onOpen={onOpen} />}
            {found.classes.length > 0 && <MakeSlice key={`${mapId} ${found.title} ${rows.length}`} found={found} rows={rows} tables={tables} />}
          </div>
        )}
      </Loaded>
    </Card>
  );
}

function Classes({ found, onTitle }: { found: Selection; onTitle: (title: string) => void }) {
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label="Failures among selected samples by class">
      <table className="map-classes">
        <caption className="unseen">Failures among selected samples by class</caption>
        <thead>
          <tr><th scope="col">Class</th><th scope="col">Wrong inside</th><th scope="col">Wrong in the rest</th><th scope="col"><span className="unseen">Words</span></th></tr>
        </thead>
        <tbody>
          {found.classes.slice(0, 12).map((count) => (
            <tr key={count.title}>
              <th scope="row">{count.title}</th>
              <td>
                <IntervalBar rate={count.inside.value} interval={count.inside.interval} {...(count.rest.total > 0 ? { other: count.rest.value } : {})} label={`Wrong inside ${count.title}`} />
                {percent(count.inside.value)} <span className="quiet">({counted(count.inside.count)} of {counted(count.inside.total)}, {range(count.inside.interval)})</span>
              </td>
              <td>{count.rest.total > 0 ? percent(count.rest.value) : "–"} <span className="quiet">({counted(count.rest.count)} of {counted(count.rest.total)})</span></td>
              <td>
                {count.title === found.title
                  ? <span className="badge">shown below</span>
                  : <Button kind="quiet" onClick={() => onTitle(count.title)} aria-label={`Look at it: ${count.title}`}>Look at it</Button>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Common({ found, tables, onOpen }: { found: Selection; tables: string; onOpen: (row: number) => void }) {
  return (
    <>
      <div className="columns">
        <div>
          <h3>Words that tell them from other samples of {found.title}</h3>
          {found.words.length === 0 && <p className="quiet">None found.</p>}
          <ul className="map-words">
            {found.words.map((word) => (
              <li key={word.words}>
                <span>{word.words}</span> <span className="quiet figure">{score(word.score)}</span>{" "}
                <Link href={`/classes/${encodeURIComponent(found.title)}?phrase=${encodeURIComponent(word.words)}`} aria-label={`try in the class view: ${word.words}`}>try in the class view</Link>
              </li>
            ))}
          </ul>
        </div>
        {found.values.length > 0 && (
          <div>
            <h3>Values they have more often</h3>
            <ul className="map-words">
              {found.values.map((value) => (
                <li key={`${value.column} ${value.value}`}>{value.column}: <strong>{value.value}</strong> <span className="quiet">{percent(value.inside.value)}, rest {percent(value.rest.value)}</span></li>
              ))}
            </ul>
          </div>
        )}
      </div>
      <h3>Typical samples, wrong ones first</h3>
      <div className="map-examples">
        {found.examples.map((sample) => (
          <ImageTile key={sample.row} sample={sample} tables={tables} side={92} onOpen={() => onOpen(sample.row)} />
        ))}
      </div>
    </>
  );
}

function MakeSlice({ found, rows, tables }: { found: Selection; rows: number[]; tables: string }) {
  const mayChange = useMayChange();
  const queries = useQueryClient();
  const first = useMemo(() => found.words[0]?.words ?? "", [found]);
  const [words, setWords] = useState(first);
  const making = useMutation({
    mutationFn: () => unwrap(api.POST("/api/slices/from-rows", { body: { title: found.title, rows: rows.slice(0, MOST_PICKED), words: words.trim(), tables } })),
    onSuccess: () => askAgain(queries, allBut("session", "map")),
  });
  if (!mayChange) return null;
  const made = making.data;
  return (
    <Form className="stack" onSubmit={() => making.mutate()}>
      <h3>Make it a slice of {found.title}</h3>
      <p className="quiet">A rule is learnt that finds such samples, and tested once on the confirmation half, which you have not seen.</p>
      <div className="row">
        <label className="field">
          <span>What they have in common</span>
          <input value={words} maxLength={200} required onChange={(event) => setWords(event.target.value)} />
        </label>
        <Button type="submit" disabled={!words.trim() || making.isPending || rows.length > MOST_PICKED}>Make it a slice</Button>
      </div>
      {rows.length > MOST_PICKED && <p className="note warn">Select at most {counted(MOST_PICKED)} samples to make a slice.</p>}
      <div role="status">
        {making.isPending && <p>Learning the rule and testing it …</p>}
        {made && (
          <p className="note">
            <strong>{made.line.title}</strong>: {made.line.verdict_words} The rule finds {percent(made.agreement.recall)} of what you selected, and {percent(made.agreement.precision)} of
            what it finds was selected. <Link href={`/slices/${made.line.slice_id}`}>Open the slice</Link>
          </p>
        )}
      </div>
      {making.error && <ErrorNote error={making.error} />}
    </Form>
  );
}
