/** What differs between two texts, as lines to show: those that differ, and some around them. */

/** A stretch of lines as the comparison gives it. */
export interface Change {
  readonly value: string
  readonly added?: boolean
  readonly removed?: boolean
}

export interface DiffLine {
  readonly sign: '+' | '-' | ' ' | '…'
  readonly text: string
}

const CONTEXT = 3

/** The lines; `…` stands for lines that are equal and far from what differs. Empty when nothing differs. */
export function shownLines(changes: readonly Change[]): readonly DiffLine[] {
  if (changes.every(({ added, removed }) => added !== true && removed !== true)) return []
  return changes.flatMap(({ value, added, removed }, place) => {
    const lines = value.replace(/\n$/, '').split('\n')
    const sign = added === true ? '+' : removed === true ? '-' : ' '
    const all = lines.map((text): DiffLine => ({ sign, text }))
    if (sign !== ' ') return all
    const head = place === 0 ? 0 : CONTEXT
    const tail = place === changes.length - 1 ? 0 : CONTEXT
    const hidden = lines.length - head - tail
    if (hidden < 2) return all
    const between: DiffLine = { sign: '…', text: `${hidden} equal lines` }
    return [...all.slice(0, head), between, ...all.slice(lines.length - tail)]
  })
}
