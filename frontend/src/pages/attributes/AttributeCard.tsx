import { useState } from "react";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { percent } from "../../components/figures";
import { EditDialog, type Editing } from "./EditDialogs";
import { SOURCE_WORDS, type Attribute, type Attributes } from "./tables";
import { ValueTable } from "./ValueTable";

type Props = { view: Attributes; attribute: Attribute; shown: string | null; onShow: (value: string) => void };

/** One attribute: where it is from, its values by result, and what can be changed. */
export function AttributeCard({ view, attribute, shown, onShow }: Props) {
  const mayChange = useMayChange();
  const [isEditing, setEditing] = useState(false);
  const [ticked, setTicked] = useState<string[]>([]);
  const [editing, open] = useState<Editing | null>(null);
  const chosen = attribute.values.filter((value) => ticked.includes(value.value_id));
  const done = () => {
    open(null);
    setTicked([]);
  };
  const canTell = view.can_tell && attribute.is_worded;
  const tick = (value: string) => setTicked(ticked.includes(value) ? ticked.filter((one) => one !== value) : [...ticked, value]);
  return (
    <Card
      title={attribute.name}
      aside={mayChange && <Button aria-pressed={isEditing} onClick={() => setEditing(!isEditing)}>{isEditing ? "Done" : "Edit"}</Button>}
    >
      <p className="quiet">{facts(attribute)}</p>
      {isEditing && (
        <div className="row edit-bar" role="group" aria-label={`Change ${attribute.name}`}>
          <Button onClick={() => open({ kind: "rename attribute", attribute })}>Rename</Button>
          {canTell && <Button onClick={() => open({ kind: "add value", attribute })}>Add a value</Button>}
          <Button disabled={chosen.length < 2} onClick={() => open({ kind: "merge values", attribute, values: chosen })}>
            {chosen.length < 2 ? "Merge (tick two or more)" : `Merge ${chosen.length} values`}
          </Button>
          <Button kind="danger" onClick={() => open({ kind: "delete attribute", attribute })}>Delete attribute</Button>
        </div>
      )}
      {attribute.state === "waiting" && <p className="note warn">The words of this attribute have not been compared with the images yet. Assign attributes to see its values.</p>}
      {attribute.state === "left out" && <p className="note warn">This attribute cannot be recognised in the images: {attribute.note}. Try other phrases, or fewer values.</p>}
      <p className="legend"><span className="right"><i />right</span><span className="wrong"><i />wrong</span><span>The line in the rate shows the usual failure rate, {percent(view.failures.value)}.</span></p>
      <ValueTable view={view} attribute={attribute} shown={shown} onShow={onShow} isEditing={isEditing} ticked={ticked} onTick={tick} onAct={(kind, value) => open({ kind, attribute, value })} />
      {editing && <EditDialog editing={editing} attributes={view.attributes} version={view.version} onDone={done} />}
    </Card>
  );
}

function facts(attribute: Attribute): string {
  const said = [SOURCE_WORDS[attribute.source]];
  if (attribute.unsure_share > 0) said.push(`unsure for ${percent(attribute.unsure_share)} of samples`);
  if (attribute.missing_share > 0) said.push(`nothing known of ${percent(attribute.missing_share)}`);
  if (attribute.agreement !== null) said.push(`two wordings agree on ${percent(attribute.agreement)}`);
  const text = said.join("; ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
