/** The steps of the tutorial: what is said, and what has to be done before the next one. */

export type Step = { key: "look" | "say" | "read" | "reword" | "drag" | "accept"; title: string; words: string; hint?: string };

export const STEPS: Step[] = [
  { key: "look", title: "Look", words: "An AI names shapes. On the left it was right, on the right it was wrong. What do most of the wrong ones have that the right ones have not?" },
  { key: "say", title: "Complete the sentence", words: "Say it in a word or two. First try words that do not fit: type", hint: "large squares" },
  { key: "read", title: "Read the Error Score", words: "It tells how well your words pick out the wrong images: 0 is no better than guessing, 1 is all of them and no others. These words are not it." },
  { key: "reword", title: "Say it in other words", words: "Look again at the right-hand side, and type what you see. If nothing comes to mind:", hint: "red squares" },
  { key: "drag", title: "Move the line", words: "Images to the right of the line are those you mean; they get a ring. Drag it, or press the arrow keys, and watch the score." },
  { key: "accept", title: "Accept", words: "Happy with the score? Then accept: your words become a finding that is checked on other images." },
];

export type Done = { score: number | null; hasMoved: boolean };
export const GOOD_SCORE = 0.5;

/** Return whether somebody did what a step asks for. */
export function isDone(step: Step["key"], done: Done): boolean {
  if (step === "say") return done.score !== null;
  if (step === "reword") return (done.score ?? 0) >= GOOD_SCORE;
  if (step === "drag") return done.hasMoved;
  return true;
}
