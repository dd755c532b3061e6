/**
 * Rows that stay where they are while the pointer or the focus is on them, however the list behind them is sorted anew. Their values
 * stay fresh; what is new waits below, so that nothing under the pointer moves.
 */
import { type FocusEvent, useRef, useState } from 'react'

/** The rows in the order of `keys`, then those that are new. A row that is gone is shown as it was. */
export function inOrderOf<Row>(
  keys: readonly string[],
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  gone: ReadonlyMap<string, Row>,
): readonly Row[] {
  const fresh = new Map(rows.map((row) => [keyOf(row), row]))
  const kept = keys.flatMap((key) => {
    const row = fresh.get(key) ?? gone.get(key)
    return row === undefined ? [] : [row]
  })
  const known = new Set(keys)
  return [...kept, ...rows.filter((row) => !known.has(keyOf(row)))]
}

export interface Steady<Row> {
  readonly rows: readonly Row[]
  /** For the element around the rows. */
  readonly hold: {
    onPointerEnter(): void
    onPointerLeave(): void
    onFocus(): void
    onBlur(event: FocusEvent): void
  }
}

/** Holds the order of rows while somebody is on them. `list` names the list: another one is shown in its own order at once. */
export function useSteady<Row>(list: string, rows: readonly Row[], keyOf: (row: Row) => string): Steady<Row> {
  const [isPointed, setPointed] = useState(false)
  const [isFocused, setFocused] = useState(false)
  const shown = useRef<{ readonly list: string; readonly rows: readonly Row[] }>({ list, rows: [] })
  const before = shown.current.list === list ? shown.current.rows : []
  const steady =
    isPointed || isFocused
      ? inOrderOf(before.map(keyOf), rows, keyOf, new Map(before.map((row) => [keyOf(row), row])))
      : rows
  shown.current = { list, rows: steady }
  return {
    rows: steady,
    hold: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocus: () => setFocused(true),
      onBlur: ({ currentTarget, relatedTarget }) => {
        if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) setFocused(false)
      },
    },
  }
}
