/** The columns of a list of letters. */

import { errorLine } from '../acts/error-line.ts'
import type { LetterItem } from '../api/types.ts'
import { LetterLink } from '../kit/links.tsx'
import { StatusBadge } from '../kit/status.tsx'
import type { Column } from '../kit/table.tsx'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'

export const LETTER_COLUMNS: readonly Column<LetterItem>[] = [
  { id: 'status', title: 'Status', width: '6.75rem', cell: (letter) => <StatusBadge letter={letter} /> },
  { id: 'engine', title: 'Engine', width: '7rem', oneLine: true, cell: ({ engine }) => engine },
  {
    id: 'queue',
    title: 'Queue',
    width: '10.5rem',
    oneLine: true,
    cell: ({ originalQueue }) => (
      <span title={originalQueue ?? undefined}>{visible(originalQueue ?? '–')}</span>
    ),
  },
  {
    id: 'key',
    title: 'Instance or key',
    narrow: 'title',
    width: '10.5rem',
    oneLine: true,
    cell: (letter) => (
      <LetterLink letter={letter}>
        <span title={letter.instanceId}>{visible(letter.instanceId)}</span>
      </LetterLink>
    ),
  },
  {
    id: 'error',
    title: 'Error',
    narrow: 'text',
    oneLine: true,
    cell: (letter) => <span title={letter.errorMessage.slice(0, 1_000)}>{errorLine(letter)}</span>,
  },
  {
    id: 'attempts',
    title: 'Attempts',
    width: '5.5rem',
    numeric: true,
    cell: ({ dequeueCount }) => grouped(dequeueCount),
  },
  {
    id: 'age',
    title: 'Last failure',
    width: '7rem',
    numeric: true,
    cell: ({ lastFailureAtUtc }) => <Time at={lastFailureAtUtc} />,
  },
]

/** Beside the panel there is room for less; it shows the rest. */
const WITH_PANEL: readonly string[] = ['status', 'engine', 'key', 'error', 'age']

export const NARROW_COLUMNS = LETTER_COLUMNS.filter(({ id }) => WITH_PANEL.includes(id))
