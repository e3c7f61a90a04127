import { percent } from "../../components/figures";
import { SHORT_SOURCES, worstValue, type Attribute } from "./tables";

type Props = { attributes: Attribute[]; chosen: string; onChoose: (id: string) => void };

const MOST_BARS = 14;

/** All attributes, each with a small image of its values. */
export function AttributeList({ attributes, chosen, onChoose }: Props) {
  return (
    <ul className="attribute-list">
      {attributes.map((attribute) => (
        <li key={attribute.attribute_id}>
          <button type="button" aria-current={attribute.attribute_id === chosen ? "true" : undefined} onClick={() => onChoose(attribute.attribute_id)}>
            <span className="attribute-words">
              <strong>{attribute.name}</strong>
              <span className="quiet">{said(attribute)}</span>
            </span>
            <SmallBars attribute={attribute} />
          </button>
        </li>
      ))}
    </ul>
  );
}

function said(attribute: Attribute): string {
  if (attribute.state === "waiting") return "waits to be assigned";
  if (attribute.state === "left out") return "cannot be recognised";
  const worst = worstValue(attribute);
  return `${SHORT_SOURCES[attribute.source]}${worst ? ` · worst: ${worst.title} ${percent(worst.failures.value)}` : ""}`;
}

/** One column a value: wrong samples on top of right ones. */
function SmallBars({ attribute }: { attribute: Attribute }) {
  const values = attribute.values.slice(0, MOST_BARS);
  const most = Math.max(1, ...values.map((value) => value.failures.total));
  const width = 100 / Math.max(values.length, 4);
  return (
    <svg className="small-bars" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">
      {values.map((value, place) => {
        const [all, wrong] = [(40 * value.failures.total) / most, (40 * value.failures.count) / most];
        return (
          <g key={value.value_id}>
            <rect className="right" x={place * width} width={width * 0.8} y={40 - all + wrong} height={all - wrong} />
            <rect className="wrong" x={place * width} width={width * 0.8} y={40 - all} height={wrong} />
          </g>
        );
      })}
    </svg>
  );
}
