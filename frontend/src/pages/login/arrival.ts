/** What an address brings along: the owner's token (`#token=...`) or an invitation (`#invite=...`). */
export type Arrival = { token: string | null; invite: string | null };

/** Return what the part of an address after `#` brings. */
export function arrivalOf(hash: string): Arrival {
  const found = /^#(token|invite)=([\w~.+-]+)$/.exec(hash);
  const secret = found?.[2] ?? null;
  return { token: found?.[1] === "token" ? secret : null, invite: found?.[1] === "invite" ? secret : null };
}

/** Take what an address brings out of it at once, so that it is neither copied along with the address nor kept in the history. */
export function takeArrival(): Arrival {
  const arrival = arrivalOf(window.location.hash);
  if (arrival.token || arrival.invite) {
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
  }
  return arrival;
}
