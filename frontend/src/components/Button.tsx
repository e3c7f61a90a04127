import type { ButtonHTMLAttributes } from "react";

type Props = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: "primary" | "plain" | "danger" | "quiet" };

/** A button; `primary` at most once on a page. */
export function Button({ kind = "plain", type = "button", className = "", ...rest }: Props) {
  return <button type={type} className={`button ${kind} ${className}`} {...rest} />;
}
