/** How the last hour compares with what is usual, in words. Pure. */

export interface Comparison {
  readonly words: string
  /** More than anybody is used to: worth a look. */
  readonly isHigh: boolean
}

/** From here on it is more, or less, than usual. */
const MORE = 1.5
const LESS = 0.5
/** Fewer than this are no reason to worry, however many times the usual they are. */
const FEW = 5

/** `usualPerHour` is null as long as there is too little to know it by. */
export function againstUsual(lastHour: number, usualPerHour: number | null): Comparison {
  if (usualPerHour === null) return { words: 'not enough history', isHigh: false }
  if (lastHour === 0 && usualPerHour < 1) return { words: 'as usual', isHigh: false }
  if (usualPerHour < 1 / 2) return { words: 'usually none', isHigh: lastHour >= FEW }
  const times = lastHour / usualPerHour
  if (times >= MORE) return { words: `${timesText(times)} usual`, isHigh: lastHour >= FEW }
  return { words: times <= LESS ? 'less than usual' : 'as usual', isHigh: false }
}

/** `1.5×`, `3×`, `120×`. */
const timesText = (times: number): string =>
  `${times < 10 ? Number(times.toFixed(1)) : Math.round(times).toLocaleString('en-US')}×`
