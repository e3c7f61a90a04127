import { useState } from "react";
import { api, rememberCsrfToken, unwrap, type Schemas } from "../../api/client";

export type Login = Partial<Schemas["SignInRequest"]>;

/** Log in; a refusal is returned in words. */
export function useLogin(said: string | null, onLoggedIn: () => void) {
  const [refused, setRefused] = useState<string | null>(said);
  const [isPending, setPending] = useState(false);
  const login = async (given: Login): Promise<void> => {
    setPending(true);
    setRefused(null);
    try {
      const session = await unwrap(api.POST("/api/session", { body: given }));
      rememberCsrfToken(session.csrf_token);
      onLoggedIn();
    } catch (error) {
      setRefused((error as Error).message);
    } finally {
      setPending(false);
    }
  };
  return { login, refused, isPending };
}
