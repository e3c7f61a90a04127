/** What the server knows of studies, and what can be done with them. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { askAgain, named } from "../../api/askAgain";
import { api, unwrap, type Schemas } from "../../api/client";

export type Study = Schemas["StudyView"];
export type Progress = Schemas["OwnProgress"];
export type Invite = Schemas["InviteView"];
export type MadeInvite = Schemas["MadeInviteView"];
export type Participant = Schemas["Participant"];
export type TableRow = Schemas["StudyTableRow"];
export type Summary = Schemas["StudySummary"];

const WATCH_MILLISECONDS = 10_000;
const OWN_MILLISECONDS = 4_000;
const at = (study_id: string) => ({ params: { path: { study_id } } });

/** All studies that whoever is here may see. */
export function useStudies() {
  return useQuery({ queryKey: ["studies"], queryFn: () => unwrap(api.GET("/api/studies")) });
}

/** One study. */
export function useStudy(id: string) {
  return useQuery({ queryKey: ["studies", id], queryFn: () => unwrap(api.GET("/api/studies/{study_id}", at(id))) });
}

/** How far whoever is here is in a study. */
export function useProgress(id: string) {
  return useQuery({
    queryKey: ["studies", id, "progress"],
    queryFn: () => unwrap(api.GET("/api/studies/{study_id}/progress", at(id))),
    refetchInterval: OWN_MILLISECONDS,
  });
}

/** Who takes part; asked again while the page is open. */
export function usePeople(id: string) {
  return useQuery({
    queryKey: ["studies", id, "people"],
    queryFn: () => unwrap(api.GET("/api/studies/{study_id}/people", at(id))),
    refetchInterval: WATCH_MILLISECONDS,
  });
}

/** Everything that was said; asked again while the page is open. */
export function useStudyTable(id: string) {
  return useQuery({
    queryKey: ["studies", id, "table"],
    queryFn: () => unwrap(api.GET("/api/studies/{study_id}/table", at(id))),
    refetchInterval: WATCH_MILLISECONDS,
  });
}

/** The invitations into a study. */
export function useInvites(id: string) {
  return useQuery({ queryKey: ["studies", id, "invites"], queryFn: () => unwrap(api.GET("/api/studies/{study_id}/invites", at(id))) });
}

/** What the owner does with a study. */
export function useOwnerActions(id: string) {
  const queries = useQueryClient();
  const onSuccess = () => askAgain(queries, named("studies"));
  const setOpen = useMutation({
    mutationFn: (isOpen: boolean) => unwrap(isOpen ? api.POST("/api/studies/{study_id}/reopen", at(id)) : api.POST("/api/studies/{study_id}/close", at(id))),
    onSuccess,
  });
  const invite = useMutation({
    mutationFn: (body: Schemas["InviteRequest"]) => unwrap(api.POST("/api/studies/{study_id}/invites", { ...at(id), body })),
    onSuccess,
  });
  const revoke = useMutation({
    mutationFn: (inviteId: string) =>
      unwrap(api.POST("/api/studies/{study_id}/invites/{invite_id}/revoke", { params: { path: { study_id: id, invite_id: inviteId } } })),
    onSuccess,
  });
  const repair = useMutation({
    mutationFn: (isEvery: boolean) => unwrap(api.POST("/api/studies/{study_id}/repairs", { ...at(id), body: { is_every: isEvery } })),
    onSuccess: () => askAgain(queries, named("jobs")),
  });
  return { setOpen, invite, revoke, repair };
}

/** Agree to take part, and answer the attention check. */
export function useConsent(id: string) {
  const queries = useQueryClient();
  const onSuccess = (progress: Progress) => queries.setQueryData(["studies", id, "progress"], progress);
  const agree = useMutation({ mutationFn: () => unwrap(api.POST("/api/studies/{study_id}/consent", at(id))), onSuccess });
  const answer = useMutation({ mutationFn: (said: string) => unwrap(api.POST("/api/studies/{study_id}/attention", { ...at(id), body: { answer: said } })), onSuccess });
  return { agree, answer };
}

/** What somebody who takes part says of a class as a whole. */
export function useFinishing(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (done: { class_title: string; is_finished: boolean }) =>
      unwrap(api.POST("/api/studies/{study_id}/finished", { ...at(id), body: done })),
    onSuccess: (progress) => queries.setQueryData(["studies", id, "progress"], progress),
  });
}
