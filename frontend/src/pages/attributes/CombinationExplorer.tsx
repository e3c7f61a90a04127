import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, unwrap } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { chance, percent, range } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { CombinationList } from "./CombinationList";
import { Field } from "./EditDialogs";
import { HeatTableView } from "./HeatTableView";
import { chosenOf, LEAST_SUPPORT, MOST_CHOSEN, type Attribute, type Chosen, type Combination } from "./tables";
import { useProof } from "./useAttributes";

type Props = { attributes: Attribute[]; title: string; version: number; onShow: (chosen: Chosen[]) => void };

/** Values together: chosen attributes as a table or a list, or the worst combinations over all of them. */
export function CombinationExplorer({ attributes, title, version, onShow }: Props) {
  const usable = attributes.filter((attribute) => attribute.state === "assigned");
  const [picked, setPicked] = useState<string[]>([]);
  const [support, setSupport] = useState(10);
  const mayChange = useMayChange();
  const proof = useProof();
  const chosen = picked.filter((id) => usable.some((attribute) => attribute.attribute_id === id));
  const floor = Math.max(LEAST_SUPPORT, support || LEAST_SUPPORT);
  const query = useQuery({
    queryKey: ["attribute-combinations", title, chosen, floor, version],
    queryFn: () => unwrap(api.GET("/api/attributes/combinations", {
      params: { query: { attributes: chosen, min_support: floor, limit: chosen.length === 2 ? 2500 : 60, ...(title ? { title } : {}) } },
    })),
    placeholderData: (before) => before,
  });
  const pick = (place: number, id: string) => setPicked(id ? [...chosen.slice(0, place), id, ...chosen.slice(place + 1)] : chosen.slice(0, place));
  const onProve = mayChange && title ? (combination: Combination) => proof.mutate({ title, chosen: chosenOf(combination) }) : null;
  const [first, second] = chosen.map((id) => usable.find((attribute) => attribute.attribute_id === id));
  return (
    <div className="stack">
      <div className="row">
        {Array.from({ length: Math.min(MOST_CHOSEN, chosen.length + 1) }, (_, place) => (
          <Field key={place} label={place === 0 ? "Attribute" : `and attribute ${place + 1}`}>
            <select value={chosen[place] ?? ""} onChange={(event) => pick(place, event.target.value)}>
              <option value="">{place === 0 ? "the worst of all" : "–"}</option>
              {usable.filter((one) => one.attribute_id === chosen[place] || !chosen.includes(one.attribute_id)).map((one) => <option key={one.attribute_id} value={one.attribute_id}>{one.name}</option>)}
            </select>
          </Field>
        ))}
        <Field label="Least samples">
          <input type="number" min={LEAST_SUPPORT} max={1_000_000} value={support} onChange={(event) => setSupport(Number(event.target.value))} className="narrow-input" />
        </Field>
      </div>
      {!title && mayChange && <p className="quiet">Choose a class above to prove a combination: slices belong to one class.</p>}
      <Proof proof={proof} />
      <Loaded query={query} what="combinations">
        {(data) => (
          <>
            <p className="quiet" role="status">{data.sentence} Rate of {title || "all classes"}: {percent(data.failures.value)} ({range(data.failures.interval)}).</p>
            {chosen.length === 2 && first && second ? (
              <HeatTableView combinations={data.combinations} first={first} second={second} usual={data.failures.value} onShow={onShow} onProve={onProve} isBusy={proof.isPending} />
            ) : (
              <CombinationList combinations={data.combinations} usual={data.failures.value} onShow={onShow} onProve={onProve} isBusy={proof.isPending} />
            )}
          </>
        )}
      </Loaded>
    </div>
  );
}

/** What became of the last proof. */
function Proof({ proof }: { proof: ReturnType<typeof useProof> }) {
  if (proof.error) return <ErrorNote error={proof.error} />;
  if (proof.isPending) return <p role="status" className="loading">Proving on the other half …</p>;
  const found = proof.data?.line;
  if (!found) return null;
  const { inside, outside } = found;
  return (
    <div role="status" className={`note ${found.verdict === "confirmed" ? "" : "warn"}`}>
      <p>
        <strong>{found.title}: {found.verdict}.</strong> {inside && `On the other half ${inside.count} of ${inside.total} fail (${percent(inside.value)}, ${range(inside.interval)}), against ${percent(outside?.value)} of the rest`}; q = {chance(found.q_value)} over {found.n_tested} tested slices.{" "}
        <Link href={`/slices/${found.slice_id}`}>To the slice</Link>
      </p>
      <Button kind="quiet" onClick={() => proof.reset()}>Close</Button>
    </div>
  );
}
