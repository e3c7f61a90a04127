import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { api, unwrap, type Schemas } from "../api/client";
import { isStatic } from "../api/static";
import { go } from "../app/hashLocation";
import { useSession } from "../app/session";
import { Button } from "../components/Button";
import { counted } from "../components/figures";
import { Loaded } from "../components/Loaded";
import { MarkPanel } from "../marks/MarkPanel";
import { CopyButton } from "./CopyButton";
import { depth, forgetRows, imageQuery, showInstead, useStepping } from "./imageSet";
import { useHeat } from "./heat";
import { HeatFacts } from "./HeatFacts";
import { Nearest } from "./Nearest";
import { RepairsOnImage } from "./RepairsOnImage";
import { SampleFacts } from "./SampleFacts";
import { Stage, type StageHandle } from "./Stage";
import "./viewer.css";

type Facts = Schemas["SampleFacts"];

const ROW = /^\d{1,16}$/;
const PAN = 80;

/** Ask for a sample: pages know rows, which hold for the tables they came with; addresses that are kept hold ids. */
function useSample(id: string, tables: string) {
  return useQuery({
    queryKey: ["sample", id, ROW.test(id) ? tables : ""],
    queryFn: (): Promise<Facts> =>
      ROW.test(id)
        ? unwrap(api.GET("/api/samples/{row}", { params: { path: { row: Number(id) }, query: { tables } } }))
        : unwrap(api.GET("/api/sample-ids/{sample_id}", { params: { path: { sample_id: id } } })),
    retry: false,
  });
}

/** One image in the whole window, with everything that is known of it; the page it was opened from stays below. */
export function Viewer({ id, query }: { id: string; query: string }) {
  const { person, has_images: hasImages } = useSession();
  const box = useRef<HTMLDialogElement>(null);
  const stage = useRef<StageHandle>(null);
  const queries = useQueryClient();
  const params = new URLSearchParams(query);
  const found = useSample(id, params.get("tables") ?? "");
  const facts = found.data;
  const { place, total, step } = useStepping(facts, query, person.role !== "annotator");
  const [isWide, setWide] = useState(false);
  const [isHot, setHot] = useState(false);
  const [hotClass, setHotClass] = useState(0);
  const mayHeat = hasImages && !isStatic() && person.role !== "annotator" && Boolean(facts?.has_heat_map);
  const { heat, error: heatError } = useHeat(facts, isHot && mayHeat);
  useEffect(() => {
    if (!facts || !ROW.test(id) || isStatic()) return;
    queries.setQueryData(["sample", facts.sample_id, ""], facts);
    showInstead(facts.sample_id, imageQuery(query));
  }, [facts, id, queries, query]);
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    // The image takes the keys: on the first button, Space or Enter would press what nobody chose.
    dialog?.focus();
    return () => dialog?.close();
  }, []);
  const close = useCallback(() => {
    const steps = depth();
    forgetRows();
    if (steps > 0) window.history.go(-steps);
    else go(person.role === "annotator" || isStatic() ? "/" : `/images?${imageQuery(query).toString()}`);
  }, [person.role, query]);
  useKeys({ step, stage: () => stage.current, toggle: () => setWide((old) => !old), heat: () => setHot((old) => !old) });
  return (
    <dialog ref={box} tabIndex={-1} className={`viewer ${isWide ? "is-wide" : ""} ${hasImages ? "" : "is-table"}`} aria-labelledby="viewer-name" onCancel={(event) => { event.preventDefault(); close(); }}>
      <header className="viewer-head">
        <h2 id="viewer-name">{facts?.name ?? "Image"}</h2>
        {facts && <CopyButton text={facts.name} what="file name" />}
        <p className="viewer-place quiet" role="status">{place === null ? "" : `${counted(place + 1)} of ${counted(total)}`}</p>
        <div className="row viewer-tools">
          {hasImages && (
            <>
              <Button aria-label="Zoom out" onClick={() => stage.current?.by(1 / 1.5)}>−</Button>
              <Button aria-label="Zoom in" onClick={() => stage.current?.by(1.5)}>+</Button>
              <Button aria-label="Fit: show the whole image" onClick={() => stage.current?.fit()}>Fit</Button>
              <Button aria-label="1:1, original size" onClick={() => stage.current?.full()}>1:1</Button>
              {mayHeat && <Button aria-pressed={isHot} onClick={() => setHot(!isHot)}>Heat map</Button>}
              <Button aria-pressed={isWide} onClick={() => setWide(!isWide)}>{isWide ? "Show details" : "Hide details"}</Button>
            </>
          )}
          {!isStatic() && <CopyButton text={() => window.location.href} what="link" isLabelled />}
          <Button onClick={close} aria-label="Close">✕</Button>
        </div>
      </header>
      {hasImages && (
        <Stage heat={heat?.maps[hotClass] ?? heat?.maps[0]} handle={stage} onStep={step} hasPrevious={place !== null && place > 0} hasNext={place !== null && place + 1 < total} image={facts ? { row: facts.row, tables: facts.tables, width: facts.width, height: facts.height, words: words(facts) } : null} />
      )}
      {!isWide && (
        <div className="viewer-side" tabIndex={0} role="region" aria-label="Details">
          {!hasImages && <div className="row"><Button onClick={() => step(-1)} disabled={!place}>Previous</Button><Button onClick={() => step(1)} disabled={place === null || place + 1 >= total}>Next</Button></div>}
          {isHot && mayHeat && <HeatFacts heat={heat} error={heatError} shown={hotClass} onShow={setHotClass} />}
          <Loaded query={found} what="what is known of it">{(data) => <SampleFacts facts={data} />}</Loaded>
          {facts && !isStatic() && person.role !== "annotator" && <MarkPanel facts={facts} />}
          {facts && !isStatic() && person.role !== "annotator" && <RepairsOnImage facts={facts} />}
          {facts && !isStatic() && person.role !== "annotator" && hasImages && <Nearest facts={facts} />}
          <p className="quiet viewer-keys">← → other images · + − zoom · 0 whole image · 1 original size · Shift and arrows move · D details · H heat map · W label is wrong · U unusable · N note · T tag · Esc closes</p>
        </div>
      )}
    </dialog>
  );
}

function words(facts: Facts): string {
  const verdict = facts.is_failure === null ? "" : facts.is_failure ? ", wrong" : ", right";
  return `${facts.name}: ${facts.labels.join(", ") || "not labelled"}, predicted as ${facts.answers.join(", ") || "nothing"}${verdict}`;
}

type Keys = { step: (by: number) => void; stage: () => StageHandle | null; toggle: () => void; heat: () => void };

function useKeys({ step, stage, toggle, heat }: Keys): void {
  const now = useRef({ step, stage, toggle, heat });
  useEffect(() => {
    now.current = { step, stage, toggle, heat };
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest("input, select, textarea")) return;
      const { step: go_, stage: at, toggle: change, heat: warm } = now.current;
      const shifts: Record<string, [number, number]> = { ArrowLeft: [PAN, 0], ArrowRight: [-PAN, 0], ArrowUp: [0, PAN], ArrowDown: [0, -PAN] };
      const shift = shifts[event.key];
      const acts: Record<string, () => void> = {
        ArrowLeft: () => go_(-1),
        ArrowRight: () => go_(1),
        "+": () => at()?.by(1.5),
        "=": () => at()?.by(1.5),
        "-": () => at()?.by(1 / 1.5),
        "0": () => at()?.fit(),
        "1": () => at()?.full(),
        d: change,
        h: warm,
      };
      const act = event.shiftKey && shift ? () => at()?.pan({ x: shift[0], y: shift[1] }) : acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
