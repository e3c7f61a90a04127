import { useState } from "react";
import { Button } from "../../components/Button";
import type { Entry } from "./entering";

type Props = { onEnter: (entry: Entry) => Promise<void>; isEntering: boolean };

/** Come in with the owner's token. */
export function TokenForm({ onEnter, isEntering }: Props) {
  const [token, setToken] = useState("");
  return (
    <form className="card" onSubmit={(event) => { event.preventDefault(); void onEnter({ token: token.trim() }); }}>
      <h2>With a token</h2>
      <label className="field">
        <span>Token</span>
        <input value={token} onChange={(event) => setToken(event.target.value)} type="password" autoComplete="off" maxLength={200} required />
      </label>
      <Button type="submit" kind="primary" disabled={isEntering}>Come in</Button>
    </form>
  );
}
