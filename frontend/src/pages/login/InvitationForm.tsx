import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Loaded } from "../../components/Loaded";
import type { Login } from "./useLogin";

type Invitation = Schemas["InvitationView"];
type Session = Schemas["SessionView"];
type Props = { invite: string; present: Session | null; onLogin: (login: Login) => Promise<void>; onLoggedIn: () => void; isPending: boolean };

/** Accept an invitation to a study: a name, and a password for those who want to log in again from elsewhere. */
export function InvitationForm({ invite, present, onLogin, onLoggedIn, isPending }: Props) {
  const query = useQuery({
    queryKey: ["invitation", invite],
    queryFn: () => unwrap(api.POST("/api/session/invitation", { body: { invite } })),
    staleTime: Infinity,
    retry: false,
  });
  const isBack = present !== null && query.data?.study_id === present.person.study_id;
  useEffect(() => {
    if (isBack) onLoggedIn();
  }, [isBack, onLoggedIn]);
  return (
    <>
      <h1>You are invited</h1>
      {present && !isBack && (
        <p className="note">
          This browser is logged in as {present.person.name}, {present.person.role}.{" "}
          <Button kind="quiet" onClick={onLoggedIn}>Continue as {present.person.name}</Button>
        </p>
      )}
      <Loaded query={query} what="the invitation">
        {(invitation) => <AcceptForm invitation={invitation} isPending={isPending} onAccept={(login) => onLogin({ ...login, invite })} />}
      </Loaded>
    </>
  );
}

type AcceptProps = { invitation: Invitation; isPending: boolean; onAccept: (login: Login) => Promise<void> };

function AcceptForm({ invitation, isPending, onAccept }: AcceptProps) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const accept = () => onAccept(password ? { name, password } : { name });
  return (
    <Form className="card" onSubmit={() => void accept()}>
      <p>{purpose(invitation)}</p>
      <label className="field">
        <span>Your name, as others will see it</span>
        <input value={name} onChange={(event) => setName(event.target.value)} autoComplete="name" maxLength={100} required />
      </label>
      <label className="field">
        <span>Password (optional)</span>
        <input
          value={password} onChange={(event) => setPassword(event.target.value)} type="password" autoComplete="new-password"
          minLength={8} maxLength={1000} aria-describedby="why-password"
        />
      </label>
      <p className="quiet" id="why-password">This browser remembers you for a week. With a password of 8 characters or more you can also log in from elsewhere.</p>
      <Button type="submit" kind="primary" disabled={isPending}>Begin</Button>
    </Form>
  );
}

function purpose(invitation: Invitation): string {
  const study = `“${invitation.title}”`;
  if (invitation.role === "annotator") return `In the study ${study} you look at images that an AI got right and wrong, and say in your own words what the wrong ones have in common.`;
  if (invitation.role === "viewer") return `In the study ${study} you can look at everything; nothing can be changed.`;
  return `You become an owner of the study ${study} and of the whole project.`;
}
