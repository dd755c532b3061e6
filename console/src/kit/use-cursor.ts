/** Which row of a list is the current one, moved by `j` and `k`; it stays within the list. */
import { useEffect, useState } from 'react'
import type { Key } from '../keys/keys.tsx'

export interface Cursor {
  /** -1: none yet. */
  readonly index: number
  readonly setIndex: (index: number) => void
  /** The keys that move it; give them to `useKeys`. */
  readonly keys: readonly Key[]
}

export function useCursor(rows: number): Cursor {
  const [index, setIndex] = useState(-1)
  useEffect(() => {
    setIndex((before) => Math.min(before, rows - 1))
  }, [rows])
  return {
    index,
    setIndex,
    keys: [
      { keys: 'j', does: 'next row', run: () => setIndex((before) => Math.min(before + 1, rows - 1)) },
      { keys: 'k', does: 'previous row', run: () => setIndex((before) => Math.max(before - 1, 0)) },
    ],
  }
}
