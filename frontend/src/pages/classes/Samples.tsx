import { useMemo, useState } from "react";
import { useSession } from "../../app/session";
import { counted, percent } from "../../components/figures";
import { ImageGrid } from "../../components/ImageGrid";
import type { Sample } from "../../components/ImageTile";
import { openSample } from "../../viewer/imageSet";
import type { ClassColumns } from "./classData";
import type { Parted, Separation } from "./separation";

type Props = { data: ClassColumns; separation: Separation | null; parted: Parted | null; phrase: string };
type Shown = { title: string; words: string; count: number; at: (place: number) => number; kind: string };

const SIDE = 96;
const HEIGHT = 372;

/** Two grids side by side: right and wrong images, or images that the words fit less and more. */
export function Samples({ data, separation, parted, phrase }: Props) {
  const { has_images: hasImages } = useSession();
  const [byPrediction, setByPrediction] = useState(false);
  const halves: Shown[] = useMemo(() => {
    if (!separation || !parted || byPrediction) {
      return [
        { title: "The AI is right", words: "", count: data.right.length, at: (place) => data.right[place] ?? 0, kind: "is-right" },
        { title: "The AI is wrong", words: "", count: data.wrong.length, at: (place) => data.wrong[place] ?? 0, kind: "is-wrong" },
      ];
    }
    const wrong = (some: number, all: number) => `wrong on ${percent(all ? some / all : 0)}`;
    return [
      { title: `Does not fit “${phrase}”`, words: wrong(parted.wrongOutside, parted.outside), count: parted.outside, at: (place) => separation.nearest[parted.inside + place] ?? 0, kind: "" },
      { title: `Fits “${phrase}”`, words: wrong(parted.wrongInside, parted.inside), count: parted.inside, at: (place) => separation.nearest[place] ?? 0, kind: "" },
    ];
  }, [data, byPrediction, parted, separation, phrase]);
  const openers = useMemo(() => halves.map((half) => (sample: Sample) => openFrom(data, half, sample)), [data, halves]);
  return (
    <section className="card" aria-label="Images">
      <div className="card-head">
        <h2>{hasImages ? "Images" : "Samples"} of {data.title}</h2>
        {separation && (
          <div className="switch" role="group" aria-label="How the images are sorted">
            <button type="button" aria-pressed={!byPrediction} onClick={() => setByPrediction(false)}>By your words</button>
            <button type="button" aria-pressed={byPrediction} onClick={() => setByPrediction(true)}>Right and wrong</button>
          </div>
        )}
      </div>
      <div className="two-grids">
        {halves.map((half, side) => (
          <div key={side}>
            <h3 className={`grid-title ${half.kind}`}>
              {half.title} <span className="quiet">{counted(half.count)}{half.words && `, ${half.words}`}</span>
            </h3>
            <ImageGrid count={half.count} sampleAt={(place) => data.sampleAt(half.at(place))} tables={data.tables} label={half.title} side={SIDE} height={HEIGHT} onOpen={openers[side]!} />
          </div>
        ))}
      </div>
      <p className="legend">
        <span className="right"><i />✓ right</span>
        <span className="wrong"><i />✗ wrong{hasImages && ": the words below an image are what the AI says"}</span>
      </p>
    </section>
  );
}

/** Open an image; the ones before and after it are those of its grid. */
function openFrom(data: ClassColumns, half: Shown, sample: Sample): void {
  const rowAt = (place: number) => data.sampleAt(half.at(place)).row;
  let place = 0;
  while (place < half.count && rowAt(place) !== sample.row) place += 1;
  openSample(sample.row, data.tables, { label: data.title, part: "discovery half" }, { count: half.count, rowAt, place });
}
