import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { allBut, askAgain, named } from "../../api/askAgain";
import { api, unwrap } from "../../api/client";
import type { Chosen, EditBody } from "./tables";

const NOTHING = { attribute: "", values: [], title: "", given: [], question: "", to: "", target: 0 };
const SHOWN = ["attributes", "attribute-edits"];
const COUNTED = ["attribute-combinations", "attribute-samples"];

/** All attributes, within a class or over all. */
export function useAttributes(title: string) {
  return useQuery({
    queryKey: ["attributes", title],
    queryFn: () => unwrap(api.GET("/api/attributes", { params: { query: title ? { title } : {} } })),
    placeholderData: (before) => before,
  });
}

/** All edits, newest first. */
export function useEdits() {
  return useQuery({ queryKey: ["attribute-edits"], queryFn: () => unwrap(api.GET("/api/attributes/edits")) });
}

/** Make an edit; whatever comes of it, attributes and edits are asked for again, and with their version what is counted from them. */
export function useEdit(version: number) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (edit: EditBody) => unwrap(api.POST("/api/attributes/edits", { body: { version, ...NOTHING, ...edit } })),
    onSettled: () => askAgain(queries, named(...SHOWN)),
  });
}

/** Prove a combination; slices and the overview change with it. */
export function useProof() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ title, chosen }: { title: string; chosen: Chosen[] }) =>
      unwrap(api.POST("/api/attributes/proofs", { body: { title, values: Object.fromEntries(chosen.map((one) => [one.attribute, one.value])) } })),
    onSuccess: () => askAgain(queries, allBut("session", "jobs", ...SHOWN, ...COUNTED)),
  });
}
