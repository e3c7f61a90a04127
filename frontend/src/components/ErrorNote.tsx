type Props = { error: unknown; onRetry?: () => void };

/** What went wrong, in the server's words. */
export function ErrorNote({ error, onRetry }: Props) {
  const text = error instanceof Error ? error.message : String(error);
  return (
    <div role="alert" className="note bad">
      <p>{text}</p>
      {onRetry && <button type="button" className="button plain" onClick={onRetry}>Try again</button>}
    </div>
  );
}
