import { useState } from "react";
import { Button } from "../../components/Button";
import { counted } from "../../components/figures";
import { legendColour, rampColour, unknownColour, written, type Ground } from "./palette";
import type { Colouring } from "./shading";

const FEW = 12;
type Props = {
  title: string;
  colouring: Colouring;
  counts: number[];
  hidden: ReadonlySet<number>;
  ground: Ground;
  onHidden: (hidden: Set<number>) => void;
  onSelect: (code: number) => void;
};

/** What colours mean; values can be hidden and selected one by one. */
export function MapLegend({ title, colouring, counts, hidden, ground, onHidden, onSelect }: Props) {
  const [isLong, setLong] = useState(false);
  if (!colouring.codes) return <Ramp title={title} colouring={colouring} ground={ground} />;
  const all = colouring.legend.map((entry, code) => ({ ...entry, code }));
  const used = all.filter((entry) => entry.count > 0).sort((one, two) => (colouring.legend.length > FEW ? two.count - one.count : 0));
  const toggle = (code: number) => {
    const changed = new Set(hidden);
    if (!changed.delete(code)) changed.add(code);
    onHidden(changed);
  };
  return (
    <fieldset className="map-legend">
      <legend>{title}</legend>
      <ul>
        {used.slice(0, isLong ? used.length : FEW).map((entry) => (
          <li key={entry.code}>
            <label>
              <input type="checkbox" checked={!hidden.has(entry.code)} onChange={() => toggle(entry.code)} />
              <i style={{ background: written(legendColour(entry.code, entry.meaning, ground)) }} />
              <span className="map-value" title={entry.value}>{entry.value || "(empty)"}</span>
            </label>
            <span className="number">{counted(counts[entry.code] ?? 0)}</span>
            <Button kind="quiet" onClick={() => onSelect(entry.code)} disabled={!counts[entry.code]} aria-label={`Select ${entry.value}`}>Select</Button>
          </li>
        ))}
      </ul>
      <div className="row">
        {used.length > FEW && <Button kind="quiet" aria-expanded={isLong} onClick={() => setLong(!isLong)}>{isLong ? "Show fewer" : `Show all ${used.length}`}</Button>}
        {used.length > 2 && (hidden.size > 0
          ? <Button kind="quiet" onClick={() => onHidden(new Set())}>Show every value</Button>
          : <Button kind="quiet" onClick={() => onHidden(new Set(used.map((entry) => entry.code)))}>Hide all</Button>)}
      </div>
    </fieldset>
  );
}

function Ramp({ title, colouring, ground }: Pick<Props, "title" | "colouring" | "ground">) {
  const stops = [0, 0.2, 0.4, 0.6, 0.8, 1].map((share) => written(rampColour(share, ground))).join(", ");
  const figure = (value: number) => (Number.isFinite(value) ? Number(value.toPrecision(3)).toString().replace("-", "−") : "–");
  return (
    <div className="map-legend">
      <p className="map-title">{title}</p>
      <div className="map-ramp" style={{ background: `linear-gradient(to right, ${stops})` }} />
      <div className="map-ramp-ends"><span>{figure(colouring.low)}</span><span>{figure(colouring.high)}</span></div>
      <p className="legend"><span><i style={{ background: written(unknownColour(ground)) }} />not known</span></p>
    </div>
  );
}
