/** Which letters of a list are chosen: some, kept with what is known of them over pages, or all that match. */
import { useEffect, useRef, useState } from 'react'
import { nameOf } from '../acts/letter-name.ts'
import type { LetterItem } from '../api/types.ts'
import { keepPlace, keptPlace } from './list-memory.ts'

export interface Selection {
  readonly letters: readonly LetterItem[]
  readonly names: ReadonlySet<string>
  /** All that match, on all pages. */
  readonly isAll: boolean
  readonly isEmpty: boolean
  /** With `range`: all from the one before up to this one. */
  toggle(name: string, range: boolean): void
  setPage(selected: boolean): void
  selectAll(): void
  clear(): void
}

type Chosen = ReadonlyMap<string, LetterItem>

const chosenOf = (letters: readonly LetterItem[]): Chosen =>
  new Map(letters.map((letter) => [nameOf(letter), letter]))

export function useSelection(text: string, rows: readonly LetterItem[]): Selection {
  const [chosen, setChosen] = useState<Chosen>(() => chosenOf(keptPlace(text)?.selected ?? []))
  const [isAll, setAll] = useState(false)
  const anchor = useRef<string | null>(null)
  const shownText = useRef(text)
  if (shownText.current !== text) {
    shownText.current = text
    setChosen(new Map())
    setAll(false)
  }
  useEffect(() => keepPlace({ text, selected: [...chosen.values()] }), [text, chosen])

  const placeOf = (name: string | null) => rows.findIndex((row) => nameOf(row) === name)
  return {
    letters: [...chosen.values()],
    names: isAll ? new Set(rows.map(nameOf)) : new Set(chosen.keys()),
    isAll,
    isEmpty: !isAll && chosen.size === 0,
    toggle: (name, range) => {
      const [from, to] = [placeOf(anchor.current), placeOf(name)]
      const letter = rows[to]
      if (letter === undefined) return
      const next = new Map(isAll ? chosenOf(rows) : chosen)
      if (range && from >= 0) {
        for (const each of rows.slice(Math.min(from, to), Math.max(from, to) + 1))
          next.set(nameOf(each), each)
      } else if (!next.delete(name)) next.set(name, letter)
      anchor.current = name
      setAll(false)
      setChosen(next)
    },
    setPage: (selected) => {
      const next = new Map(isAll ? [] : chosen)
      for (const row of rows) {
        if (selected) next.set(nameOf(row), row)
        else next.delete(nameOf(row))
      }
      setAll(false)
      setChosen(next)
    },
    selectAll: () => {
      setChosen(new Map())
      setAll(true)
    },
    clear: () => {
      anchor.current = null
      setAll(false)
      setChosen(new Map())
    },
  }
}
