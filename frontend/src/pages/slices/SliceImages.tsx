import { useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useRef, useState, type KeyboardEvent } from "react";
import { serverRoot, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { useNoun } from "../../app/session";
import { Card } from "../../components/Card";
import { Loaded } from "../../components/Loaded";
import { ImageGrid } from "../../components/ImageGrid";
import type { Sample } from "../../components/ImageTile";
import { openSample } from "../../viewer/imageSet";
import { PAGE, sampleIn, usePage, type Kind, type Page } from "./sliceSamples";
import { useRun } from "./useRun";

type Tab = { kind: Kind; title: string; parts: [string] | [string, string] };

const TABS: Tab[] = [
  { kind: "members", title: "Members", parts: ["Members, deepest inside first"] },
  { kind: "outside", title: "Nearest misses", parts: ["Not members, those that only just miss first"] },
  { kind: "extremes", title: "Farthest", parts: ["Deepest inside", "Farthest outside"] },
  { kind: "counter", title: "Against expectation", parts: ["Members that it gets right", "Failures outside, nearest first"] },
];

/** Images of a slice, only of the half that may be looked at before something is decided. */
export function SliceImages({ slice }: { slice: Schemas["SlicePageView"] }) {
  const noun = useNoun();
  const [chosen, setChosen] = useState(0);
  const tabs = useRef<HTMLDivElement>(null);
  const tab = TABS[chosen] ?? TABS[0]!;
  const page = usePage(slice.line.slice_id, tab.kind);
  const first = useQuery(page(0));
  const { query } = useRun();
  const list = new URLSearchParams({ slice_id: slice.line.slice_id, shown: tab.kind, ...query });
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (chosen + step + TABS.length) % TABS.length;
    setChosen(next);
    tabs.current?.querySelectorAll("button")[next]?.focus();
  };
  return (
    <Card title={noun === "images" ? "Images" : "Samples"} aside={<span className="row"><span className="quiet">{slice.half}</span>{!isStatic() && <a href={`${serverRoot}/api/image-list?${list.toString()}`} download={`${slice.line.slice_id}.csv`}>Download the list</a>}</span>}>
      <div role="tablist" aria-label={`Which ${noun}`} className="slice-tabs" ref={tabs}>
        {TABS.map(({ kind, title }, place) => (
          <button key={kind} type="button" role="tab" id={`tab-${kind}`} aria-selected={place === chosen} aria-controls="slice-images" tabIndex={place === chosen ? 0 : -1} onClick={() => setChosen(place)} onKeyDown={move}>{title}</button>
        ))}
      </div>
      <div id="slice-images" role="tabpanel" aria-labelledby={`tab-${tab.kind}`}>
        <Loaded query={first} what="the images">
          {(data) => (
            <div className={tab.parts.length > 1 ? "slice-image-pair" : ""}>
              {tab.parts.map((title, part) => (
                <ImagePart key={`${tab.kind} ${part}`} title={title} slice={slice} kind={tab.kind} first={data} start={part ? data.n_first : 0} end={tab.parts.length > 1 && !part ? data.n_first : data.total} />
              ))}
            </div>
          )}
        </Loaded>
        <p className="legend"><span className="wrong"><i />fails (dashed)</span><span className="right"><i />does not fail</span></p>
      </div>
    </Card>
  );
}

type PartProps = { title: string; slice: Schemas["SlicePageView"]; kind: Kind; first: Page; start: number; end: number };

function ImagePart({ title, slice, kind, first, start, end }: PartProps) {
  const [[from, to], setNeeded] = useState([0, 0]);
  const page = usePage(slice.line.slice_id, kind);
  const firstPage = Math.floor((start + from) / PAGE);
  const lastPage = Math.max(firstPage, Math.floor((start + Math.max(from, to - 1)) / PAGE));
  const found = useQueries({ queries: Array.from({ length: lastPage - firstPage + 1 }, (_, step) => page(firstPage + step)) });
  const need = useCallback((low: number, high: number) => setNeeded([low, high]), []);
  const count = Math.max(0, (isStatic() ? Math.min(end, first.samples.length) : end) - start);
  const { query } = useRun();
  const open = useCallback((sample: Sample) => openSample(sample.row, slice.tables, { slice_id: slice.line.slice_id, shown: kind, ...query }), [slice, kind, query]);
  return (
    <section>
      <h3>{title} <span className="quiet">{end - start}</span></h3>
      <ImageGrid count={count} sampleAt={(place) => sampleIn(found[Math.floor((start + place) / PAGE) - firstPage]?.data, start + place)} onNeed={need} tables={slice.tables} label={title} height={heightFor(count)} onOpen={open} />
    </section>
  );
}

function heightFor(count: number): number {
  return count > 21 ? 440 : count > 7 ? 300 : count ? 166 : 60;
}
