/** Generated images and captions: addresses, words and the figures that forms are filled with. */
import { serverRoot, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";

export type Setup = Schemas["GenerationSetupView"];
export type Counterfactual = Schemas["CounterfactualView"];
export type CounterfactualRate = Schemas["CounterfactualRateView"];
export type Search = Schemas["SearchView"];
export type Trial = Schemas["CaptionTrialView"];

export const MOST_CAPTIONS = 12;
const LONGEST_CAPTION = 300;

/** Return the address of a generated image. */
export function generatedAddress(digest: string): string {
  return isStatic() ? `generated/${digest}.jpg` : `${serverRoot}/api/generation/images/${digest}`;
}

/** Return the captions in a text of one per line: trimmed, each once, no more than the server takes. */
export function captionsOf(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trim().slice(0, LONGEST_CAPTION));
  return [...new Set(lines.filter(Boolean))].slice(0, MOST_CAPTIONS);
}

/** Return the text with one more caption, if it is not there yet. */
export function withCaption(text: string, caption: string): string {
  return captionsOf(text).includes(caption) ? text : [...captionsOf(text), caption].join("\n");
}

/** Return how many images a series generates: each caption, and the unchanged ones. */
export function imagesOf(captions: string[], each: number): number {
  return each * (captions.length + 1);
}
