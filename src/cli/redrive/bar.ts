/** How far a redrive is, as a bar: every letter of it has its place there, and no part that is there is invisible. */

import type { RedriveCounts } from '../../client/redrive-types.ts'
import type { Style } from '../style.ts'

interface Part {
  readonly name: Exclude<keyof RedriveCounts, 'planned' | 'sent'>
  readonly cell: string
  readonly paint: (style: Style) => (text: string) => string
}

/** In the order in which they stand. Without colours the shades still tell sent, not sent and to come apart. */
const PARTS: readonly Part[] = [
  { name: 'confirmed', cell: '█', paint: (style) => style.green },
  { name: 'unconfirmed', cell: '▓', paint: (style) => style.cyan },
  { name: 'returned', cell: '▚', paint: (style) => style.red },
  { name: 'failed', cell: '▒', paint: (style) => style.red },
  { name: 'skipped', cell: '▒', paint: (style) => style.yellow },
  { name: 'remaining', cell: '░', paint: (style) => style.dim },
]

/** The bar in that many cells. */
export function redriveBar(counts: RedriveCounts, cells: number, style: Style): string {
  const shares = share(
    PARTS.map(({ name }) => counts[name]),
    cells,
  )
  return PARTS.map(({ cell, paint }, index) => paint(style)(cell.repeat(shares[index] ?? 0))).join('')
}

/** Cells for each count: in all exactly `cells`, and for each that is not zero at least one. */
export function share(counts: readonly number[], cells: number): readonly number[] {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return counts.map(() => 0)
  const exact = counts.map((count) => (count / total) * cells)
  const given = exact.map((part, index) => ((counts[index] ?? 0) > 0 ? Math.max(1, Math.floor(part)) : 0))
  // What rounding left over, or took too much, is settled where it is felt the least.
  const surplus = (index: number): number => (given[index] ?? 0) - (exact[index] ?? 0)
  const indices = counts.flatMap((count, index) => (count > 0 ? [index] : []))
  for (let left = cells - given.reduce((sum, part) => sum + part, 0); left !== 0; left -= Math.sign(left)) {
    const open = left > 0 ? indices : indices.filter((index) => (given[index] ?? 0) > 1)
    const [first] = open.toSorted((a, b) => (left > 0 ? surplus(a) - surplus(b) : surplus(b) - surplus(a)))
    if (first === undefined) break
    given[first] = (given[first] ?? 0) + Math.sign(left)
  }
  return given
}
