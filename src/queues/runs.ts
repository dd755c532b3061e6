/** Sets of serials as runs: "7,9,12,12" is 7, 8, 9 and 12. A lease of neighbours is one run, whatever its size. */

/** Writes ascending serials as runs. */
export function formatRuns(serials: readonly number[]): string {
  const bounds: number[] = []
  for (const serial of serials) {
    if (bounds.length > 0 && bounds[bounds.length - 1] === serial - 1) bounds[bounds.length - 1] = serial
    else bounds.push(serial, serial)
  }
  return bounds.join(',')
}

/** Reads runs back as ascending serials. */
export function parseRuns(text: string): number[] {
  const serials: number[] = []
  const bounds = text.split(',').map(Number)
  for (let i = 0; i + 1 < bounds.length; i += 2) {
    const last = bounds[i + 1] ?? 0
    for (let serial = bounds[i] ?? 1; serial <= last; serial++) serials.push(serial)
  }
  return serials
}
