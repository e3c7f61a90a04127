/** Colours of points: told apart by people who see colours otherwise, on light and on dark ground. */

export type Colour = readonly [number, number, number];
export type Ground = "light" | "dark";

const RIGHT: Record<Ground, string> = { light: "#2f78b0", dark: "#6fb3e0" };
const WRONG: Record<Ground, string> = { light: "#c2570c", dark: "#f0934a" };
const UNKNOWN: Record<Ground, string> = { light: "#98a2ad", dark: "#64717f" };
/** The blue of right and the orange of wrong are not among them; neighbours differ in lightness as well as in hue. */
const FEW: Record<Ground, string[]> = {
  light: ["#3b3f9e", "#b08400", "#0b7a5c", "#d0569f", "#2aa5b8", "#6b2e14", "#7fa814", "#7a5bd0", "#4c5a66", "#9c2f4f", "#1f4e3d", "#b9a0e8"],
  dark: ["#8f93ff", "#f0e05a", "#3fbf93", "#ff8fc4", "#5fe0ee", "#c98a66", "#b6e04f", "#d9b8ff", "#c3cdd6", "#ff6f7f", "#2f9e8f", "#ffd0a8"],
};
const RAMP: Record<Ground, string[]> = { light: ["#c3d0dc", "#5f9cc4", "#2b5c9e", "#4a1f6b"], dark: ["#2f4356", "#3f7fa8", "#7fc0c9", "#fff0a8"] };
const GOLDEN_ANGLE = 137.508;

/** Return a colour written as #rrggbb as three numbers from 0 to 255. */
export function parsed(text: string): Colour {
  const value = Number.parseInt(text.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** Return a colour as style sheets write it. */
export function written(colour: Colour): string {
  return `rgb(${colour[0]} ${colour[1]} ${colour[2]})`;
}

/** Return the colour of a value by its place in the legend; right, wrong and unknown have their own. */
export function legendColour(place: number, meaning: string, ground: Ground): Colour {
  if (meaning === "right") return parsed(RIGHT[ground]);
  if (meaning === "wrong") return parsed(WRONG[ground]);
  if (meaning === "unknown") return parsed(UNKNOWN[ground]);
  const few = FEW[ground];
  const own = few[place];
  return own ? parsed(own) : further(place - few.length, ground);
}

/** Return the colour of a number from 0 (least) to 1 (most). */
export function rampColour(share: number, ground: Ground): Colour {
  const stops = RAMP[ground];
  const along = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const first = Math.min(stops.length - 2, Math.floor(along));
  const [one, two] = [parsed(stops[first] ?? "#000000"), parsed(stops[first + 1] ?? "#000000")];
  const mixed = (channel: 0 | 1 | 2) => Math.round(one[channel] + (two[channel] - one[channel]) * (along - first));
  return [mixed(0), mixed(1), mixed(2)];
}

/** Return the colour of points of which nothing is known. */
export function unknownColour(ground: Ground): Colour {
  return parsed(UNKNOWN[ground]);
}

/** Hues go round by the golden angle and lightness changes with every step, so that neighbours in the legend differ. */
function further(step: number, ground: Ground): Colour {
  const hue = (step * GOLDEN_ANGLE + 40) % 360;
  const lightness = (ground === "light" ? [0.36, 0.5, 0.28] : [0.72, 0.6, 0.82])[step % 3] ?? 0.5;
  const chroma = (1 - Math.abs(2 * lightness - 1)) * 0.62;
  const channel = (shift: number) => {
    const place = (shift + hue / 30) % 12;
    return Math.round(255 * (lightness - (chroma / 2) * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
