/**
 * Keys. A screen says which keys it knows and what they do (`useKeys`); while it is shown, they work, and `?` lists them. Keys typed
 * into a field, or with Ctrl, Alt or ⌘, are left alone. A key may be a sequence of two: `g l`. Whoever speaks to the computer, or hits
 * keys by accident, can switch them all off.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from 'react'
import { keep, kept } from '../kit/kept.ts'
import { meaningOf, SEQUENCE_MS } from './press.ts'

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
  readonly isOn: boolean
  setOn(isOn: boolean): void
}

const KeyContext = createContext<KeyBoard | null>(null)

const KEPT_AS = 'bartleby.keys'

/** All keys that work now, those of the most recent screen last. */
export function useKeyGroups(): readonly KeyGroup[] {
  return useContext(KeyContext)?.groups ?? []
}

/** Whether keys work at all, and the switch for it. */
export function useKeySwitch(): Pick<KeyBoard, 'isOn' | 'setOn'> {
  return useContext(KeyContext) ?? { isOn: false, setOn: () => {} }
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
  const [isOn, setOn] = useState(() => kept('browser', KEPT_AS) !== 'off')

  useEffect(() => {
    if (!isOn) return
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (isTyping(event.target)) return
      if (isOwnKey(event)) return
      if (event.key === 'Shift') return
      const known = latest.current.flatMap(({ keys }) => keys)
      const before = first.current
      first.current = null
      const isSecond = before !== null && event.timeStamp - before.atMs < SEQUENCE_MS
      const meaning = meaningOf(
        known.map(({ keys }) => keys),
        isSecond ? before.key : null,
        event.key,
      )
      if (meaning.kind === 'wait') first.current = { key: event.key, atMs: event.timeStamp }
      if (meaning.kind !== 'run') return
      event.preventDefault()
      // The screen that came last wins where two know a key.
      known.findLast(({ keys }) => keys === meaning.keys)?.run()
    }
    document.addEventListener('keydown', pressed)
    return () => document.removeEventListener('keydown', pressed)
  }, [isOn])

  const add = useMemo(
    () => (group: KeyGroup) => {
      setGroups((before) => [...before, group])
      return () => setGroups((before) => before.filter((each) => each !== group))
    },
    [],
  )
  const board = useMemo(
    () => ({
      groups,
      add,
      isOn,
      setOn: (chosen: boolean) => {
        keep('browser', KEPT_AS, chosen ? 'on' : 'off')
        setOn(chosen)
      },
    }),
    [groups, add, isOn],
  )
  return <KeyContext value={board}>{children}</KeyContext>
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName)) &&
    !(target instanceof HTMLInputElement && ['checkbox', 'radio', 'button'].includes(target.type))
  )
}

/** Enter and Space on a link, a button or a box to tick are its own; in a dialog Escape and all letters are. */
function isOwnKey({ key, target }: KeyboardEvent): boolean {
  if (!(target instanceof Element)) return false
  if (target.closest('[role="dialog"], [role="menu"], [role="listbox"]') !== null) return true
  return (
    (key === 'Enter' || key === ' ') && target.closest('a, button, input, summary, [role="tab"]') !== null
  )
}
