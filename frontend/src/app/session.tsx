import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useState, type ReactNode } from "react";
import { api, Problem, rememberRequestToken, told, type Schemas } from "../api/client";
import { EntryPage } from "../pages/entry/EntryPage";
import { Loading } from "../components/Loading";

type Session = Schemas["SessionView"];

const SessionContext = createContext<Session | null>(null);

/** Return who is here; only used below the provider. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("There is no session.");
  return session;
}

/** Return whether something can be changed by whoever is here. */
export function useMayChange(): boolean {
  const session = useSession();
  return !session.is_read_only && session.person.role === "owner";
}

/** The token in the address `#token=...` is taken out of it at once, so that it is not copied along with the address. */
function takeToken(): string | null {
  const found = /^#token=([\w-]+)$/.exec(window.location.hash);
  if (!found) return null;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  return found[1] ?? null;
}

/** Let people in, then show the pages. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const [token] = useState(takeToken);
  const queries = useQueryClient();
  const { data, error, isPending } = useQuery({
    queryKey: ["session"],
    queryFn: async () => {
      const session = token
        ? await told(api.POST("/api/session", { body: { token } }))
        : await told(api.GET("/api/session"));
      rememberRequestToken(session.request_token);
      return session;
    },
    staleTime: Infinity,
    retry: false,
  });
  useEffect(() => {
    if (data) document.title = `${data.project} · weakspot`;
  }, [data]);
  if (isPending) return <Loading what="the session" />;
  if (error || !data) {
    const said = error instanceof Problem && error.status === 401 && !token ? null : (error?.message ?? null);
    return <EntryPage said={said} onEntered={() => void queries.invalidateQueries()} />;
  }
  return <SessionContext.Provider value={data}>{children}</SessionContext.Provider>;
}
