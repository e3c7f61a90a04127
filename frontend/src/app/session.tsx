import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import { api, Problem, rememberCsrfToken, unwrap, type Schemas } from "../api/client";
import { isStatic } from "../api/static";
import { Button } from "../components/Button";
import { ErrorNote } from "../components/ErrorNote";
import { Loading } from "../components/Loading";
import { arrivalOf, takeArrival } from "../pages/login/arrival";
import { LoginPage } from "../pages/login/LoginPage";
import { SetupPage } from "../pages/setup/SetupPage";

type Session = Schemas["SessionView"];

const SESSION = ["session"];
const HEALTH_MILLISECONDS = 700;
const SessionContext = createContext<Session | null>(null);

/** Return who is here; only used below the provider. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("There is no session.");
  return session;
}

/** What samples are called here: images, or samples of a table without any. */
export function useNoun(): "images" | "samples" {
  return useSession().has_images ? "images" : "samples";
}

/** Return whether something can be changed by whoever is here. */
export function useMayChange(): boolean {
  const session = useSession();
  return !session.is_read_only && session.person.role === "owner";
}

/** Log people in, then show the pages. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const [arrival] = useState(takeArrival);
  const [isInvited, setInvited] = useState(Boolean(arrival.invite));
  const token = useRef(arrival.token);
  const queries = useQueryClient();
  const { data, error, isPending } = useQuery({
    queryKey: SESSION,
    queryFn: async () => {
      const given = token.current;
      token.current = null;
      const session = await (given ? loginOrPresent(given) : presentSession());
      rememberCsrfToken(session.csrf_token);
      return session;
    },
    staleTime: Infinity,
    retry: false,
  });
  useArrivalsInThisPage();
  useEffect(() => {
    if (!data) return;
    document.title = `${data.project} · weakspot`;
    const { role, study_id: study } = data.person;
    if (role === "annotator" && study && /^#?\/?$/.test(window.location.hash)) window.location.hash = `#/studies/${encodeURIComponent(study)}`;
  }, [data]);
  const onLoggedIn = useCallback(() => {
    setInvited(false);
    void queries.resetQueries();
  }, [queries]);
  if (isPending) return <Loading what="the session" />;
  if (isInvited || !data) {
    const isNobody = error instanceof Problem && error.status === 401 && !arrival.token;
    return <LoginPage said={isNobody || !error ? null : error.message} invite={arrival.invite} present={data ?? null} onLoggedIn={onLoggedIn} />;
  }
  return (
    <SessionContext.Provider value={data}>
      <WhenReady>{children}</WhenReady>
    </SessionContext.Provider>
  );
}

/** Return the session of this browser; where there is none, that is known without a refused request. */
async function presentSession(): Promise<Session> {
  const isPresent = isStatic() || (await unwrap(api.GET("/api/session/present"))).is_present;
  if (!isPresent) throw new Problem(401, "Nobody is signed in with this browser.");
  return unwrap(api.GET("/api/session"));
}

/** Log in with a token; an expired one does no harm where this browser is logged in already. */
async function loginOrPresent(token: string): Promise<Session> {
  try {
    return await unwrap(api.POST("/api/session", { body: { token } }));
  } catch (refusal) {
    try {
      return await presentSession();
    } catch {
      throw refusal;
    }
  }
}

/** An address with a token or an invitation that is opened in this page starts it again. */
function useArrivalsInThisPage(): void {
  useEffect(() => {
    const look = () => {
      const arrival = arrivalOf(window.location.hash);
      if (arrival.token || arrival.invite) window.location.reload();
    };
    window.addEventListener("hashchange", look);
    return () => window.removeEventListener("hashchange", look);
  }, []);
}

/** Show the pages as soon as the server has opened the project. */
function WhenReady({ children }: { children: ReactNode }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["health"],
    queryFn: () => unwrap(api.GET("/api/health")),
    enabled: !isStatic(),
    refetchInterval: (query) => (query.state.data?.state === "preparing" || query.state.data?.state === "set-up" ? HEALTH_MILLISECONDS : false),
    staleTime: Infinity,
  });
  const isOwner = useMayChange();
  if (isStatic() || data?.state === "ready") return <>{children}</>;
  if (data?.state === "set-up" && isOwner) return <SetupPage />;
  return (
    <main className="login" id="main">
      <h1>weakspot</h1>
      {(error !== null || data?.state === "failed") && <ErrorNote error={error ?? data?.message} onRetry={() => void refetch()} />}
      {!error && data?.state !== "failed" && (
        <p role="status">{data?.state === "set-up" ? data.message : "The project is being opened; the first time this can take minutes."} This page continues by itself.</p>
      )}
    </main>
  );
}

/** Sign out; this browser is forgotten. */
export function SignOutButton() {
  const leave = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/session")),
    onSettled: () => {
      window.history.replaceState(null, "", window.location.pathname + window.location.search);
      window.location.reload();
    },
  });
  if (isStatic()) return null;
  return <Button kind="quiet" onClick={() => leave.mutate()} disabled={leave.isPending}>Sign out</Button>;
}
