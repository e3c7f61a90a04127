import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "../../api/client";
import { counted } from "../../components/figures";
import type { Setup } from "./generation";

export type AskedCost = { words: string; amount: number; mustAgree: boolean };

/** Return what so many images cost; asked only where images are charged for. */
export function useCost(setup: Setup, images: number): AskedCost {
  const wanted = Math.min(Math.max(1, images), setup.most_budget);
  const { data } = useQuery({
    queryKey: ["generation", "cost", wanted],
    queryFn: () => unwrap(api.GET("/api/generation/cost", { params: { query: { n_images: wanted } } })),
    enabled: setup.is_charged,
    staleTime: Infinity,
  });
  if (!setup.is_charged) return { words: `Up to ${counted(wanted)} images, made on this machine; they cost nothing.`, amount: 0, mustAgree: false };
  return { words: data?.words ?? "Asking what it costs…", amount: data?.amount ?? 0, mustAgree: true };
}

/** What generating costs, shown before it starts, and a box to agree where it is charged for. */
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
