import { useState } from "react";
import type { Schemas } from "../../api/client";
import { ErrorNote } from "../../components/ErrorNote";
import { InvitationForm } from "./InvitationForm";
import { PasswordForm } from "./PasswordForm";
import { TokenForm } from "./TokenForm";
import { useEntering } from "./entering";
import "./entry.css";

type Session = Schemas["SessionView"];
type Props = { said: string | null; invite: string | null; present: Session | null; onEntered: () => void };

/** Where people without a session come in: with a token, with name and password, or with an invitation. */
export function EntryPage({ said, invite, present, onEntered }: Props) {
  const [isInvited, setInvited] = useState(Boolean(invite));
  const { enter, refused, isEntering } = useEntering(said, onEntered);
  return (
    <main className="entry" id="main">
      <p className="brand"><img src="./icon.svg" alt="" width="26" height="26" /> weakspot</p>
      {isInvited && invite ? (
        <>
          <InvitationForm invite={invite} present={present} onEnter={enter} onEntered={onEntered} isEntering={isEntering} />
          <p><button type="button" className="button quiet" onClick={() => setInvited(false)}>I have a name and password already</button></p>
        </>
      ) : (
        <>
          <h1>Come in</h1>
          <p>Open the address that <code>weakspot serve</code> printed, or the invitation that you were sent. Otherwise:</p>
          <TokenForm onEnter={enter} isEntering={isEntering} />
          <PasswordForm onEnter={enter} isEntering={isEntering} />
        </>
      )}
      <div aria-live="polite">{refused && <ErrorNote error={refused} />}</div>
    </main>
  );
}
