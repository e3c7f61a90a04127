import { percent, points } from "../components/figures";
import { LEAST_FALL, largestFall, type Heat, type HeatOfClass } from "./heat";

type Props = { heat: Heat | undefined; error: Error | null; shown: number; onShow: (place: number) => void };

/** What a heat map says, and what it does not. */
export function HeatFacts({ heat, error, shown, onShow }: Props) {
  if (error) return <p className="note warn">{error.message}</p>;
  if (!heat) return <p role="status" className="quiet">The classifier is asked …</p>;
  if (heat.done < heat.total) {
    return (
      <p role="status" className="quiet job-progress">
        <progress value={heat.done} max={heat.total} aria-label="Patches that were covered" /> {heat.done} of {heat.total} patches
      </p>
    );
  }
  const map = heat.maps[shown] ?? heat.maps[0];
  if (!map) return null;
  return (
    <section aria-label="Heat map" className="viewer-heat-words">
      {heat.maps.length > 1 && (
        <div className="row" role="group" aria-label="Of which class">
          {heat.maps.map((one, place) => <button key={one.class_name} type="button" className="button plain" aria-pressed={one === map} onClick={() => onShow(place)}>{one.class_name}</button>)}
        </div>
      )}
      <p>{sentence(map)}</p>
      <p className="quiet">This is how this classifier answers to covered patches. It does not prove what it uses: parts may matter only together, and it never saw covered images.</p>
    </section>
  );
}

function sentence(map: HeatOfClass): string {
  const most = largestFall(map);
  if (most < LEAST_FALL) return `Covering any one patch lowers “${map.class_name}” (${percent(map.probability)}) by less than 1 percentage point.`;
  return `Where it is coloured, covering a patch lowers “${map.class_name}” (${percent(map.probability)}), by up to ${points(most).replace("+", "")} percentage points.`;
}
