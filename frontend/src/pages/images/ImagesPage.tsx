import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { api, serverRoot, unwrap } from "../../api/client";
import { isStatic } from "../../api/static";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, score } from "../../components/figures";
import { ImageGrid } from "../../components/ImageGrid";
import type { Sample } from "../../components/ImageTile";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { MarkBar } from "../../marks/MarkBar";
import { asked, imageQuery, imagesAt, openSample, PAGE, type Page } from "../../viewer/imageSet";
import { Filters } from "./Filters";
import { usePicks } from "./usePicks";
import "./images.css";

const SIZES = { least: 64, usual: 128, most: 384 };

/** Every image that people may look at: chosen, ordered, as large as one likes; all of it in the address. */
export function ImagesPage() {
  const [params, setParams] = useSearchParams();
  const choices = useQuery({
    queryKey: ["image choices"],
    queryFn: () => unwrap(api.GET("/api/image-choices")),
    enabled: !isStatic(),
  });
  const query = imageQuery(params);
  const size = Math.min(SIZES.most, Math.max(SIZES.least, Number(params.get("size") ?? SIZES.usual) || SIZES.usual));
  const change = useCallback(
    (made: URLSearchParams, isStep = true) => {
      const kept = params.get("size");
      if (kept && !made.has("size")) made.set("size", kept);
      setParams(made, { replace: !isStep });
    },
    [params, setParams],
  );
  const resize = (value: string) => {
    const made = new URLSearchParams(params);
    made.set("size", value);
    change(made, false);
  };
  if (isStatic()) {
    return (
      <>
        <PageHead title="Images" />
        <p className="note">Choosing among all images needs a server: open the project with <code>weakspot serve</code>. Images of slices, classes and attributes are on their pages.</p>
      </>
    );
  }
  return (
    <>
      <PageHead title="Images" aside={<><Link className="button plain" href={`/map?${query.toString()}`}>Show on the map</Link> <a className="button plain" href={`${serverRoot}/api/image-list?${query.toString()}`} download>Download the list</a></>}>
        Every image that people may look at: the discovery half, training and pool. Press one to see it in full; with Ctrl, or Shift for a row of them, to pick it.
      </PageHead>
      <div className="stack">
        <Loaded query={choices} what="what there is to choose">{(data) => <Filters choices={data} query={query} onChange={change} />}</Loaded>
        <Chosen key={query.toString()} query={query} size={size} onSize={resize} onClear={() => change(new URLSearchParams())} />
      </div>
    </>
  );
}

type ChosenProps = { query: URLSearchParams; size: number; onSize: (value: string) => void; onClear: () => void };

function Chosen({ query, size, onSize, onClear }: ChosenProps) {
  const text = query.toString();
  const [[from, to], setNeeded] = useState([0, 1]);
  const need = useCallback((low: number, high: number) => setNeeded([low, high]), []);
  const page = (number: number) => ({
    queryKey: ["images", text, number * PAGE],
    queryFn: () => imagesAt(new URLSearchParams(text), { offset: number * PAGE }),
    staleTime: 60_000,
    retry: false,
  });
  const first = useQuery({ ...page(0), placeholderData: keepPreviousData });
  const firstPage = Math.floor(from / PAGE);
  const lastPage = Math.max(firstPage, Math.floor(Math.max(from, to - 1) / PAGE));
  const found = useQueries({ queries: Array.from({ length: lastPage - firstPage + 1 }, (_, step) => page(firstPage + step)) });
  const open = useCallback((sample: Sample) => openSample(sample.row, first.data?.tables ?? "", new URLSearchParams(text)), [first.data?.tables, text]);
  const picks = usePicks(text);
  const sampleAt = useMemo(() => (place: number) => sampleIn(found[Math.floor(place / PAGE) - firstPage]?.data, place), [found, firstPage]);
  if (first.isError) return <div className="stack"><ErrorNote error={first.error} /><p><Button onClick={onClear}>Show all images</Button></p></div>;
  const total = first.data?.total ?? 0;
  return (
    <section aria-label="Images" className="stack" aria-busy={first.isPlaceholderData}>
      <div className="row images-head">
        <p role="status"><strong>{first.data ? counted(total) : "…"}</strong> of {first.data ? counted(first.data.n_visible) : "…"} images</p>
        {text && <Button kind="quiet" onClick={onClear}>Show all</Button>}
        <Button aria-pressed={picks.isOn} onClick={() => picks.setOn(!picks.isOn)}>Pick images</Button>
        <label className="images-size">Size <input type="range" min={SIZES.least} max={SIZES.most} step={32} value={size} onChange={(event) => onSize(event.target.value)} /></label>
      </div>
      {(picks.isOn || picks.picked.size > 0) && first.data && total > 0 && (
        <MarkBar
          meant={picks.isAll ? { query: asked(query) } : { rows: [...picks.picked], tables: first.data.tables }}
          count={picks.isAll ? total : picks.picked.size}
        >
          {!picks.isAll && <Button onClick={() => picks.setAll(true)}>All {counted(total)} of this filter</Button>}
          <Button kind="quiet" onClick={picks.clear}>Pick none</Button>
        </MarkBar>
      )}
      {picks.error && <ErrorNote error={picks.error} />}
      {first.data && total === 0 && <p className="note">No image is like that. Take something back, or show all.</p>}
      {total > 0 && <ImageGrid key={`${text} ${first.isPlaceholderData ? "" : "ready"}`} count={total} sampleAt={sampleAt} onNeed={need} tables={first.data?.tables ?? ""} label="Images" side={size} height="max(420px, calc(100vh - 260px))" onOpen={open} picking={picks.picking} picked={picks.picked} />}
    </section>
  );
}

function sampleIn(page: Page | undefined, place: number): Sample | undefined {
  const one = page?.images[place - page.offset];
  return one && { row: one.row, name: one.name, label: one.label, answer: one.answer, is_failure: one.is_failure, marks: one.marks, place, ...(one.score === null ? {} : { note: score(one.score) }) };
}
