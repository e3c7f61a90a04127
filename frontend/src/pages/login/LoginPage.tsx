import { useState } from "react";
import type { Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Form } from "../../components/Form";
import { InvitationForm } from "./InvitationForm";
import { useLogin, type Login } from "./useLogin";
import "./login.css";

type Session = Schemas["SessionView"];
type Props = { said: string | null; invite: string | null; present: Session | null; onLoggedIn: () => void };

/** Where people without a session log in: with a token, with name and password, or with an invitation. */
export function LoginPage({ said, invite, present, onLoggedIn }: Props) {
  const [isInvited, setInvited] = useState(Boolean(invite));
  const { login, refused, isPending } = useLogin(said, onLoggedIn);
  return (
    <main className="login" id="main">
      <p className="brand"><img src="./icon.svg" alt="" width="26" height="26" /> weakspot</p>
      {isInvited && invite ? (
        <>
          <InvitationForm invite={invite} present={present} onLogin={login} onLoggedIn={onLoggedIn} isPending={isPending} />
          <p><button type="button" className="button quiet" onClick={() => setInvited(false)}>I have a name and password already</button></p>
        </>
      ) : (
        <>
          <h1>Log in</h1>
          <p>Open the address that <code>weakspot serve</code> printed, or the invitation that you were sent. Otherwise:</p>
          <TokenForm onLogin={login} isPending={isPending} />
          <PasswordForm onLogin={login} isPending={isPending} />
        </>
      )}
      <div aria-live="polite">{refused && <ErrorNote error={refused} />}</div>
    </main>
  );
}

type FormProps = { onLogin: (login: Login) => Promise<void>; isPending: boolean };

/** Log in with the owner's token. */
function TokenForm({ onLogin, isPending }: FormProps) {
  const [token, setToken] = useState("");
  return (
    <Form className="card" onSubmit={() => void onLogin({ token: token.trim() })}>
      <h2>With a token</h2>
      <label className="field">
        <span>Token</span>
        <input value={token} onChange={(event) => setToken(event.target.value)} type="password" autoComplete="off" maxLength={200} required />
      </label>
      <Button type="submit" kind="primary" disabled={isPending}>Log in</Button>
    </Form>
  );
}

/** Log in with name and password. */
function PasswordForm({ onLogin, isPending }: FormProps) {
  const [login, setLogin] = useState("");
  const [password, setPassword] = useState("");
  return (
    <Form className="card" onSubmit={() => void onLogin({ login, password })}>
      <h2>With name and password</h2>
      <label className="field">
        <span>Name</span>
        <input value={login} onChange={(event) => setLogin(event.target.value)} autoComplete="username" maxLength={100} required />
      </label>
      <label className="field">
        <span>Password</span>
        <input value={password} onChange={(event) => setPassword(event.target.value)} type="password" autoComplete="current-password" maxLength={1000} required />
      </label>
      <Button type="submit" disabled={isPending}>Log in</Button>
    </Form>
  );
}
