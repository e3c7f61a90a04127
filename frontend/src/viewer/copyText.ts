/** Put text on the clipboard; also on pages that are served without https, where browsers offer only the old way. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- there is no other way without https
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}
