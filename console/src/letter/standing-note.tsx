/** What became of a letter, in a sentence that changes by itself when more is heard. */
import { Alert } from '@mantine/core'
import type { ReactNode } from 'react'
import { errorLine } from '../acts/error-line.ts'
import type { LetterDetail } from '../api/types.ts'
import { FullTime, Time } from '../time/time.tsx'
import { returnedAt } from './timeline.ts'

interface Note {
  readonly title: string
  readonly colour: string
  readonly says: ReactNode
}

/** Screen readers hear it too: the region is always there, what is in it changes. */
export function StandingNote({ letter }: { readonly letter: LetterDetail }) {
  const note = noteOf(letter)
  return (
    <div role="status" className="standing">
      {note !== null && (
        <Alert
          color={note.colour}
          title={note.title}
          variant="light"
          p="sm"
          className="standing-note"
          role="presentation"
        >
          {note.says}
        </Alert>
      )}
      {letter.remarks.map((remark) => (
        <Alert
          key={remark}
          color="yellow"
          variant="light"
          p="sm"
          className="standing-note"
          role="presentation"
        >
          {remark}
        </Alert>
      ))}
    </div>
  )
}

function noteOf(letter: LetterDetail): Note | null {
  const { status, resolution, confirmedAtUtc, resolvedAtUtc, resolutionNotes, sentTo } = letter
  const by = letter.resolvedBy === null ? '' : ` by ${letter.resolvedBy}`
  const why = resolutionNotes === null || resolutionNotes === 'Retried' ? '' : ` “${resolutionNotes}”`
  if (status === 'Pending') return pendingNote(letter)
  if (status === 'Expired') {
    return {
      title: 'Expired',
      colour: 'gray',
      says: (
        <>
          Expired <Time at={letter.expiredAtUtc} />
          {by}.{why} <Restorable letter={letter} />
        </>
      ),
    }
  }
  if (resolution === 'discard') {
    return {
      title: 'Discarded',
      colour: 'gray',
      says: (
        <>
          Ended without being sent back, <Time at={resolvedAtUtc} />
          {by}.{why} <Restorable letter={letter} />
        </>
      ),
    }
  }
  if (resolution !== 'retry') {
    return { title: 'Completed', colour: 'teal', says: `Completed by a consumer of its dead queue${by}.` }
  }
  if (confirmedAtUtc !== null) {
    return {
      title: 'Confirmed',
      colour: 'teal',
      says: (
        <>
          The message sent{sentTo === null ? '' : ` to ${sentTo}`} was processed <Time at={confirmedAtUtc} />.
          {why}
        </>
      ),
    }
  }
  return {
    title: 'Sent',
    colour: 'blue',
    says: (
      <>
        Sent{sentTo === null ? '' : ` to ${sentTo}`} <Time at={resolvedAtUtc} />
        {by}.{why} Not confirmed yet; this page updates by itself.
      </>
    ),
  }
}

function Restorable({ letter: { restorableUntilUtc } }: { readonly letter: LetterDetail }) {
  if (restorableUntilUtc === null) return null
  return (
    <>
      Restorable until <FullTime at={restorableUntilUtc} />.
    </>
  )
}

function pendingNote(letter: LetterDetail): Note | null {
  const backAt = returnedAt(letter)
  if (letter.leased && letter.leaseDeadlineUtc !== null) {
    return {
      title: 'Leased',
      colour: 'yellow',
      says: (
        <>
          Leased by a consumer of its dead queue until <FullTime at={letter.leaseDeadlineUtc} />.
        </>
      ),
    }
  }
  if (backAt === null) return null
  return {
    title: 'Returned',
    colour: 'orange',
    says: (
      <>
        Sent back and failed again <Time at={backAt} />: {errorLine(letter)}
      </>
    ),
  }
}
