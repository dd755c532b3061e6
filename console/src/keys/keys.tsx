/**
 * Keys. A screen says which keys it knows and what they do (`useKeys`); while it is shown, they work, and `?` lists them. Keys typed
 * into a field, or with Ctrl, Alt or ⌘, are left alone. A key may be a sequence of two: `g l`.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from 'react'

export interface Key {
  /** As `KeyboardEvent.key` has it: `j`, `Enter`, `Escape`, `*`, `X` for Shift+x; two of them separated by a space. */
  readonly keys: string
  /** What it does, for the list of keys. */
  readonly does: string
  run(): void
}

export interface KeyGroup {
  readonly title: string
  readonly keys: readonly Key[]
}

interface KeyBoard {
  readonly groups: readonly KeyGroup[]
  add(group: KeyGroup): () => void
}

const KeyContext = createContext<KeyBoard | null>(null)

/** The second key of a sequence is waited for this long. */
const SEQUENCE_MS = 1_200

/** All keys that work now, those of the most recent screen last. */
export function useKeyGroups(): readonly KeyGroup[] {
  return useContext(KeyContext)?.groups ?? []
}

/** Makes keys work while the component is shown. `keys` may change with every render. */
export function useKeys(title: string, keys: readonly Key[]): void {
  const board = useContext(KeyContext)
  const latest = useRef(keys)
  latest.current = keys
  const shape = keys.map(({ keys: each, does }) => `${each}\n${does}`).join('\n')
  const add = board?.add
  useEffect(() => {
    if (add === undefined) return
    const group: KeyGroup = {
      title,
      keys: shape
        .split('\n')
        .flatMap((text, place, all) => (place % 2 === 0 ? [{ keys: text, does: all[place + 1] ?? '' }] : []))
        .map((key) => ({ ...key, run: () => latest.current.find((each) => each.keys === key.keys)?.run() })),
    }
    return add(group)
  }, [add, title, shape])
}

/** Gives `useKeys` to everything below it. */
export function KeyProvider({ children }: { readonly children: ReactNode }) {
  const [groups, setGroups] = useState<readonly KeyGroup[]>([])
  const latest = useRef(groups)
  latest.current = groups
  const first = useRef<{ key: string; atMs: number } | null>(null)

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (isTyping(event.target)) return
      if (isOwnKey(event)) return
      const known = latest.current.flatMap(({ keys }) => keys)
      const before = first.current
      first.current = null
      const sequence =
        before !== null && event.timeStamp - before.atMs < SEQUENCE_MS ? `${before.key} ${event.key}` : null
      // The screen that came last wins where two know a key.
      const found =
        known.findLast(({ keys }) => keys === sequence) ?? known.findLast(({ keys }) => keys === event.key)
      if (found !== undefined) {
        event.preventDefault()
        found.run()
      } else if (known.some(({ keys }) => keys.startsWith(`${event.key} `))) {
        first.current = { key: event.key, atMs: event.timeStamp }
      }
    }
    document.addEventListener('keydown', pressed)
    return () => document.removeEventListener('keydown', pressed)
  }, [])

  const add = useMemo(
    () => (group: KeyGroup) => {
      setGroups((before) => [...before, group])
      return () => setGroups((before) => before.filter((each) => each !== group))
    },
    [],
  )
  const board = useMemo(() => ({ groups, add }), [groups, add])
  return <KeyContext value={board}>{children}</KeyContext>
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName)) &&
    !(target instanceof HTMLInputElement && ['checkbox', 'radio', 'button'].includes(target.type))
  )
}

/** Enter and Space on a link or a button are its own; in a dialog Escape and all letters are. */
function isOwnKey({ key, target }: KeyboardEvent): boolean {
  if (!(target instanceof Element)) return false
  if (target.closest('[role="dialog"], [role="menu"], [role="listbox"]') !== null) return true
  return (key === 'Enter' || key === ' ') && target.closest('a, button, [role="tab"], summary') !== null
}
