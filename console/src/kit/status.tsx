/** A letter's status, in words and colour; never in colour alone. */
import { Badge } from '@mantine/core'
import type { Health, LetterItem } from '../api/types.ts'

type Standing = Pick<LetterItem, 'status' | 'resolution' | 'confirmedAtUtc'>

/** What became of a letter, in one word. */
export function standingOf({ status, resolution, confirmedAtUtc }: Standing): string {
  if (status !== 'Resolved') return status
  if (resolution !== 'retry') return resolution === 'discard' ? 'Discarded' : 'Completed'
  return confirmedAtUtc === null ? 'Sent' : 'Confirmed'
}

const COLOURS: Readonly<Record<string, string>> = {
  Pending: 'orange',
  Sent: 'blue',
  Confirmed: 'teal',
  Completed: 'teal',
  Discarded: 'gray',
  Expired: 'gray',
}

export function StatusBadge({ letter }: { readonly letter: Standing }) {
  const text = standingOf(letter)
  return (
    <Badge variant="light" color={COLOURS[text] ?? 'gray'} size="sm" className="badge">
      {text}
    </Badge>
  )
}

const HEALTH: Readonly<Record<Health, { readonly colour: string; readonly word: string }>> = {
  ok: { colour: 'teal', word: 'Healthy' },
  warn: { colour: 'yellow', word: 'Degraded' },
  fail: { colour: 'red', word: 'Failing' },
  off: { colour: 'gray', word: 'Off' },
}

export function HealthBadge({ health }: { readonly health: Health }) {
  return (
    <Badge variant="light" color={HEALTH[health].colour} size="sm" className="badge">
      {HEALTH[health].word}
    </Badge>
  )
}
