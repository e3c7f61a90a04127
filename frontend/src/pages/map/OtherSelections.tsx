import { useId, useState } from "react";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import type { Box } from "./camera";

type Props = { onView: () => void; onBox: (box: Box) => void; onClear: () => void; hasSelection: boolean };
const SIDES: [keyof Box, string][] = [["left", "Left"], ["right", "Right"], ["bottom", "Bottom"], ["top", "Top"]];

/** Ways to select points without drawing around them. */
export function OtherSelections({ onView, onBox, onClear, hasSelection }: Props) {
  const [sides, setSides] = useState<Record<keyof Box, string>>({ left: "-1", right: "0", bottom: "-1", top: "0" });
  const id = useId();
  const numbers = { left: Number(sides.left), right: Number(sides.right), bottom: Number(sides.bottom), top: Number(sides.top) };
  const isUsable = Object.values(numbers).every(Number.isFinite) && numbers.left <= numbers.right && numbers.bottom <= numbers.top;
  const choose = () => {
    if (isUsable) onBox(numbers);
  };
  return (
    <details className="map-ways">
      <summary>Select without drawing</summary>
      <div className="row">
        <Button onClick={onView}>Select what is in view</Button>
        <Button onClick={onClear} disabled={!hasSelection}>Clear the selection</Button>
      </div>
      <Form className="row" onSubmit={choose} aria-describedby={id}>
        {SIDES.map(([side, title]) => (
          <label className="field" key={side}>
            <span>{title}</span>
            <input type="number" min={-1} max={1} step={0.05} value={sides[side]} onChange={(event) => setSides({ ...sides, [side]: event.target.value })} />
          </label>
        ))}
        <Button type="submit" disabled={!isUsable}>Select this box</Button>
      </Form>
      <p id={id} className="quiet">The map reaches from −1 to 1 in both directions; 0, 0 is its middle. Values of the legend can be selected there.</p>
    </details>
  );
}
