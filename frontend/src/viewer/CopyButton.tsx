import { useEffect, useState } from "react";
import { Button } from "../components/Button";
import { copyText } from "./copyText";

const SAID_MILLISECONDS = 5000;
type Props = { text: string | (() => string); what: string; isLabelled?: boolean };

/** Copy something, and say that it is done. */
export function CopyButton({ text, what, isLabelled = false }: Props) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  useEffect(() => {
    if (!state) return undefined;
    const timer = window.setTimeout(() => setState(""), SAID_MILLISECONDS);
    return () => window.clearTimeout(timer);
  }, [state]);
  const copy = () => void copyText(typeof text === "string" ? text : text()).then((isDone) => setState(isDone ? "copied" : "failed"));
  const plain = isLabelled ? `Copy ${what}` : "Copy";
  return (
    <Button kind={isLabelled ? "plain" : "quiet"} onClick={copy} aria-label={`Copy ${what}`}>
      <span aria-live="polite">{state === "copied" ? "Copied" : state === "failed" ? "Not copied" : plain}</span>
    </Button>
  );
}
