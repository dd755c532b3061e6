/** Numbers as a row of bars, one character each. */

const BARS = '▁▂▃▄▅▆▇█'

/** Bars in proportion to the largest number; zero is the lowest, and what is more than zero is never shown as zero. */
export function sparkline(numbers: readonly number[]): string {
  const most = Math.max(1, ...numbers)
  const steps = BARS.length - 1
  return numbers
    .map((number) => BARS[number <= 0 ? 0 : Math.max(1, Math.round((number / most) * steps))])
    .join('')
}
