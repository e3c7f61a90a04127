import { useQuery } from "@tanstack/react-query";
import { api, unwrap, type Schemas } from "../api/client";
import { momentsApart, percent } from "../components/figures";

type Repair = Schemas["RepairOnSample"];

/** What each repair of the newest run changed for this image. */
export function RepairsOnImage({ facts }: { facts: Schemas["SampleFacts"] }) {
  const { data } = useQuery({
    queryKey: ["sample repairs", facts.row, facts.tables],
    queryFn: () => unwrap(api.GET("/api/samples/{row}/repairs", { params: { path: { row: facts.row }, query: { tables: facts.tables } } })),
    retry: false,
  });
  if (!data?.repairs?.length) return null;
  const made = momentsApart(data.repairs.map((repair) => repair.made));
  return (
    <section aria-label="With repairs">
      <h3>With repairs</h3>
      <ul className="plain-list viewer-repairs">
        {data.repairs.map((repair, place) => (
          <li key={repair.repair_id}>
            <b>{changeWords(repair)}</b> {repair.answer}, {percent(repair.probability)}
            <span className="quiet"> · {repair.strategy}{repair.is_current ? ", in use" : ""}{made[place] ? `, ${made[place]}` : ""}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function changeWords({ was_failure: was, is_failure: is }: Repair): string {
  if (is === null || was === null) return "";
  if (was === is) return is ? "✗ still wrong:" : "✓ still right:";
  return is ? "✗ broke:" : "✓ right now:";
}
