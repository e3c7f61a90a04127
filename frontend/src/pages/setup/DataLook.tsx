import { serverRoot, type Schemas } from "../../api/client";
import { counted } from "../../components/figures";

type Look = Schemas["DataLook"];
type Props = { look: Look; stamp: number; columns: Record<string, string>; onColumns: (columns: Record<string, string>) => void };

const ROLES: [role: string, words: string][] = [
  ["path", "Where the image is"],
  ["label", "What is true"],
  ["prediction", "What was predicted"],
  ["probabilities", "Probabilities"],
  ["split", "Training, validation, test"],
  ["group", "What belongs together"],
];
const KINDS: Record<string, string> = {
  "image-folder": "a folder of images",
  manifest: "a table of images",
  predictions: "a table of predictions without images",
  "hf-dataset": "a data set of Parquet or Arrow files",
  webdataset: "tar files of images",
  coco: "boxes (COCO)",
  yolo: "boxes (YOLO)",
};

/** What was seen of data: images first, then classes, then what its columns mean. */
export function DataLook({ look, stamp, columns, onColumns }: Props) {
  return (
    <div className="stack setup-look">
      {look.problem && <div role="alert" className="note bad"><p>{look.problem}</p></div>}
      {look.images.length > 0 && (
        <div className="setup-images" role="group" aria-label="Some images">
          {look.images.map((one) => (
            <figure key={one.place}>
              <img src={`${serverRoot}/api/setup/images/${one.place}?of=${stamp}`} alt={one.label} width="96" height="96" />
              <figcaption>{one.label}</figcaption>
            </figure>
          ))}
        </div>
      )}
      {look.n_samples > 0 && (
        <p>
          This is {KINDS[look.kind] ?? look.kind}: {look.is_whole ? "" : "at least "}{counted(look.n_samples)} labelled samples of {counted(look.n_classes)} classes{look.has_predictions ? ", with predictions" : ""}.
        </p>
      )}
      {look.classes.length > 0 && <Classes look={look} />}
      {look.columns.length > 0 && <Columns look={look} columns={columns} onColumns={onColumns} />}
    </div>
  );
}

function Classes({ look }: { look: Look }) {
  const splits = [...new Set(look.classes.flatMap((one) => Object.keys(one.splits)))];
  return (
    <details open={look.classes.length <= 12}>
      <summary>{counted(look.n_classes)} classes</summary>
      <div className="table-box">
        <table>
          <thead><tr><th>Class</th>{splits.map((split) => <th key={split} className="number">{split}</th>)}</tr></thead>
          <tbody>
            {look.classes.map((one) => (
              <tr key={one.name}><td>{one.name}</td>{splits.map((split) => <td key={split} className="number">{counted(one.splits[split] ?? 0)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

type ColumnsProps = Omit<Props, "stamp">;

function Columns({ look, columns, onColumns }: ColumnsProps) {
  const choose = (role: string, column: string) => {
    const rest = Object.fromEntries(Object.entries(columns).filter(([known]) => known !== role));
    onColumns(column ? { ...rest, [role]: column } : rest);
  };
  return (
    <details open={Boolean(look.problem) || Object.keys(columns).length > 0}>
      <summary>What the columns mean</summary>
      <div className="row setup-columns">
        {ROLES.map(([role, words]) => (
          <label key={role} className="field">
            <span>{words}</span>
            <select value={columns[role] ?? ""} onChange={(event) => choose(role, event.target.value)}>
              <option value="">{look.roles[role] && !columns[role] ? `${look.roles[role]} (by its name)` : "by its name"}</option>
              {look.columns.map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
        ))}
      </div>
    </details>
  );
}
