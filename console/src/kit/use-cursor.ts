/** Which row of a list is the current one, moved by `j` and `k`; it stays within the list. */
import { useEffect, useState } from 'react'
import type { Key } from '../keys/keys.tsx'

export interface Cursor {
  /** -1: none yet. */
  readonly index: number
  readonly setIndex: (index: number) => void
  /** How often keys moved it: then the row gets the focus. */
  readonly moved: number
  /** The keys that move it; give them to `useKeys`. */
  readonly keys: readonly Key[]
}

export function useCursor(rows: number): Cursor {
  const [index, setIndex] = useState(-1)
  const [moved, setMoved] = useState(0)
  const move = (next: (before: number) => number) => {
    setIndex(next)
    setMoved((before) => before + 1)
  }
  useEffect(() => {
    setIndex((before) => Math.min(before, rows - 1))
  }, [rows])
  return {
    index,
    setIndex,
    moved,
    keys: [
      { keys: 'j', does: 'next row', run: () => move((before) => Math.min(before + 1, rows - 1)) },
      {
        keys: 'k',
        does: 'previous row',
        run: () => move((before) => Math.min(Math.max(before - 1, 0), rows - 1)),
      },
    ],
  }
}
