import { useState } from "react";
import { api, rememberRequestToken, told, type Schemas } from "../../api/client";

export type Entry = Partial<Schemas["Entry"]>;

/** Try to come in; what stands in the way is said in words. */
export function useEntering(said: string | null, onEntered: () => void) {
  const [refused, setRefused] = useState<string | null>(said);
  const [isEntering, setEntering] = useState(false);
  const enter = async (entry: Entry): Promise<void> => {
    setEntering(true);
    setRefused(null);
    try {
      const session = await told(api.POST("/api/session", { body: entry as Schemas["Entry"] }));
      rememberRequestToken(session.request_token);
      onEntered();
    } catch (error) {
      setRefused((error as Error).message);
    } finally {
      setEntering(false);
    }
  };
  return { enter, refused, isEntering };
}
