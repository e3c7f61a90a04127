import { useState } from "react";
import { Button } from "../../components/Button";
import type { Entry } from "./entering";

type Props = { onEnter: (entry: Entry) => Promise<void>; isEntering: boolean };

/** Come in with name and password. */
export function PasswordForm({ onEnter, isEntering }: Props) {
  const [login, setLogin] = useState("");
  const [password, setPassword] = useState("");
  return (
    <form className="card" onSubmit={(event) => { event.preventDefault(); void onEnter({ login, password }); }}>
      <h2>With name and password</h2>
      <label className="field">
        <span>Name</span>
        <input value={login} onChange={(event) => setLogin(event.target.value)} autoComplete="username" maxLength={100} required />
      </label>
      <label className="field">
        <span>Password</span>
        <input value={password} onChange={(event) => setPassword(event.target.value)} type="password" autoComplete="current-password" maxLength={1000} required />
      </label>
      <Button type="submit" disabled={isEntering}>Come in</Button>
    </form>
  );
}
