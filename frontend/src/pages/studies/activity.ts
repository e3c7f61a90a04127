/** Time at work: counted while the page is seen and was used a moment ago, and told to the server in short stretches. */

export const REPORT_SECONDS = 15;
export const IDLE_SECONDS = 60;
const LONGEST_STRETCH = 60;

/** Counts the seconds that somebody is at work; knows nothing of clocks or pages, which tell it. */
export class ActivityMeter {
  private counted = 0;
  private last: number;
  private used: number;

  constructor(start: number) {
    this.last = start;
    this.used = start;
  }

  /** Somebody pressed, typed or moved. */
  use(time: number): void {
    this.tick(time, true);
    this.used = time;
  }

  /** Time went by; seconds count when the page was seen and had been used a moment ago. */
  tick(time: number, isSeen: boolean): void {
    const end = Math.min(time, this.used + IDLE_SECONDS);
    if (isSeen && end > this.last) this.counted += end - this.last;
    this.last = Math.max(this.last, time);
  }

  /** Return what was counted and begin again. */
  take(): number {
    const taken = Math.min(this.counted, LONGEST_STRETCH);
    this.counted = 0;
    return taken;
  }

  /** Count something again that could not be told. */
  giveBack(seconds: number): void {
    this.counted = Math.min(LONGEST_STRETCH, this.counted + seconds);
  }
}

/** 754 -> "12 min 34 s". */
export function duration(seconds: number): string {
  const whole = Math.floor(seconds);
  const minutes = Math.floor(whole / 60);
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}
