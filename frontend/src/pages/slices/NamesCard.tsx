import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { percent } from "../../components/figures";
import { CHART, curveChart, heightOf, type Chart, type Name } from "./curves";

/** Words for a slice and for the other end, with how accurate the classifier is on the samples nearest to them. */
export function NamesCard({ slice }: { slice: Schemas["SlicePageView"] }) {
  const sure = slice.names.filter((name) => !name.is_unsure);
  const unsure = slice.names.filter((name) => name.is_unsure);
  const chart = curveChart(sure, slice.easy_names);
  return (
    <Card title="Words">
      {chart && <CurveFigure chart={chart} />}
      {sure.length ? <NameList names={sure} title="Fails on" /> : <p className="quiet">No words are sure. Look at the images and write your own.</p>}
      {unsure.length > 0 && <NameList names={unsure} title="Not sure" />}
      {slice.easy_names.length > 0 && <NameList names={slice.easy_names} title="Does better on" />}
    </Card>
  );
}

function NameList({ names, title }: { names: Name[]; title: string }) {
  return (
    <>
      <h3>{title}</h3>
      <ul className="slice-plain-list">
        {names.map((name) => (
          <li key={`${name.describer} ${name.phrase}`}>
            {name.contrast} <span className="quiet">{name.describer === "person" ? "in a person’s words" : name.describer}{name.accuracy_nearest !== null && `, ${percent(name.accuracy_nearest)} right nearby`}</span>
            {name.is_doubtful && <span className="slice-doubt"> doubtful</span>}
            {name.doubt && <span className="quiet slice-below">{name.doubt}</span>}
            {name.held_sentence && <span className="quiet slice-below">{name.held_sentence}</span>}
            {name.witness_sentence && <span className="quiet slice-below">{name.witness_sentence}</span>}
          </li>
        ))}
      </ul>
    </>
  );
}

function CurveFigure({ chart }: { chart: Chart }) {
  const said = chart.lines.map((line) => `${line.label}: ${line.points.map((point) => `${percent(point.accuracy)} of the ${point.size} nearest`).join(", ")}`).join("; ");
  return (
    <figure className="slice-curve">
      <svg viewBox={`0 0 ${CHART.width} ${CHART.height}`} role="img" aria-label={`Accuracy by closeness. ${said}`}>
        {[0, 0.5, 1].map((accuracy) => (
          <g key={accuracy}>
            <line className="grid" x1={CHART.left} x2={CHART.width - CHART.right} y1={heightOf(accuracy)} y2={heightOf(accuracy)} />
            <text x={CHART.left - 6} y={heightOf(accuracy) + 4} textAnchor="end">{percent(accuracy)}</text>
          </g>
        ))}
        {chart.sizes.map((size) => <text key={size} x={chart.place(size)} y={CHART.height - CHART.bottom + 18} textAnchor="middle">{size}</text>)}
        {chart.lines.map((line) => (
          <g key={line.label} className={line.isHard ? "wrong" : "right"}>
            <polyline points={line.points.map((point) => `${point.x},${point.y}`).join(" ")} />
            {line.points.map((point) => (line.isHard ? <circle key={point.size} cx={point.x} cy={point.y} r="4" /> : <rect key={point.size} x={point.x - 4} y={point.y - 4} width="8" height="8" />))}
          </g>
        ))}
      </svg>
      <figcaption className="legend">
        {chart.lines.map((line) => <span key={line.label} className={line.isHard ? "wrong" : "right"}><i className={line.isHard ? "round" : ""} />{line.label}</span>)}
        <span>Accuracy of the K samples nearest to the words</span>
      </figcaption>
    </figure>
  );
}
