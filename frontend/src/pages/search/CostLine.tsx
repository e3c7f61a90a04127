import { useQuery } from "@tanstack/react-query";
import { api, told } from "../../api/client";
import { counted } from "../../components/figures";
import type { Setup } from "./drawings";

export type AskedCost = { words: string; amount: number; mustAgree: boolean };

/** Return what so many pictures cost; asked only where pictures are charged for. */
export function useCost(setup: Setup, pictures: number): AskedCost {
  const wanted = Math.min(Math.max(1, pictures), setup.most_budget);
  const { data } = useQuery({
    queryKey: ["drawings", "cost", wanted],
    queryFn: () => told(api.GET("/api/drawings/cost", { params: { query: { n_pictures: wanted } } })),
    enabled: setup.is_charged,
    staleTime: Infinity,
  });
  if (!setup.is_charged) return { words: `Up to ${counted(wanted)} pictures, made on this machine; they cost nothing.`, amount: 0, mustAgree: false };
  return { words: data?.words ?? "Asking what it costs…", amount: data?.amount ?? 0, mustAgree: true };
}

/** What drawing costs, said before it starts, and a box to agree where it is charged for. */
export function CostLine({ cost, isAgreed, onAgree }: { cost: AskedCost; isAgreed: boolean; onAgree: (isAgreed: boolean) => void }) {
  return (
    <div className="cost">
      <p className="quiet" role="status">{cost.words}</p>
      {cost.mustAgree && (
        <label><input type="checkbox" checked={isAgreed} onChange={(event) => onAgree(event.target.checked)} /> I agree to pay up to this much.</label>
      )}
    </div>
  );
}
