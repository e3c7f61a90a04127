import { useState, type FormEvent } from "react";
import { api, told } from "../../api/client";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";

type Props = { said: string | null; onEntered: () => void };

/** Where people without a session come in. */
export function EntryPage({ said, onEntered }: Props) {
  const [token, setToken] = useState("");
  const [refused, setRefused] = useState<string | null>(said);
  const enter = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await told(api.POST("/api/session", { body: { token } }));
      onEntered();
    } catch (error) {
      setRefused((error as Error).message);
    }
  };
  return (
    <main className="entry">
      <h1>weakspot</h1>
      <p>Open the address that <code>weakspot serve</code> printed, or enter its token here.</p>
      <form onSubmit={enter} className="row">
        <label className="field">
          <span>Token</span>
          <input value={token} onChange={(event) => setToken(event.target.value)} type="password" autoComplete="off" required />
        </label>
        <Button type="submit" kind="primary">Come in</Button>
      </form>
      {refused && <ErrorNote error={refused} />}
    </main>
  );
}
