/** The row that keys act on, and the panel that follows it. */
import { useEffect, useRef } from 'react'
import { nameOf } from '../acts/letter-name.ts'
import type { LetterItem, LetterKey } from '../api/types.ts'
import { type Cursor, useCursor } from '../kit/use-cursor.ts'
import { keepPlace, keptPlace } from './list-memory.ts'

/** The cursor stays on its letter when the list is read anew, and is there again on the way back. */
export function useRowCursor(text: string, rows: readonly LetterItem[]): Cursor {
  const cursor = useCursor(rows.length)
  const { index, setIndex } = cursor
  const name = useRef<string | null>(keptPlace(text)?.current ?? null)
  const seen = useRef(rows)
  const seenText = useRef(text)
  useEffect(() => {
    if (seenText.current !== text) {
      seenText.current = text
      name.current = null
      return setIndex(-1)
    }
    const row = rows[index]
    if (seen.current !== rows || index < 0) {
      seen.current = rows
      const place = rows.findIndex((each) => nameOf(each) === name.current)
      if (place >= 0 && place !== index) return setIndex(place)
    }
    if (row !== undefined) name.current = nameOf(row)
    keepPlace({ text, current: name.current })
  }, [text, rows, index, setIndex])
  return cursor
}

/** While the panel is open, it shows the row that keys are on. */
export function useFollowingPanel(
  panel: string | undefined,
  current: LetterItem | undefined,
  showPanel: (letter: LetterKey) => void,
): void {
  const followed = useRef(current)
  useEffect(() => {
    const hasMoved =
      followed.current !== undefined && current !== undefined && nameOf(followed.current) !== nameOf(current)
    followed.current = current
    if (hasMoved && panel !== undefined && current !== undefined && nameOf(current) !== panel)
      showPanel(current)
  })
}
