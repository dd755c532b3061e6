/** The newest letters of a group, and the way to all of them. */
import type { UseQueryResult } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { errorLine } from '../acts/error-line.ts'
import type { LetterItem, Page, SignatureGroup } from '../api/types.ts'
import { useKeys } from '../keys/keys.tsx'
import { LetterLink, LettersLink } from '../kit/links.tsx'
import { Empty, Panel, Shown } from '../kit/page.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { useSteady } from '../kit/steady.ts'
import { type Column, Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'

const keyOf = ({ engine, rowKey }: LetterItem) => `${engine}/${rowKey}`

const COLUMNS: readonly Column<LetterItem>[] = [
  { id: 'status', title: 'Status', width: '7rem', cell: (letter) => <StatusBadge letter={letter} /> },
  { id: 'engine', title: 'Engine', width: '8rem', oneLine: true, cell: ({ engine }) => engine },
  {
    id: 'queue',
    title: 'Queue',
    width: '11rem',
    oneLine: true,
    cell: ({ originalQueue }) => visible(originalQueue ?? '–'),
  },
  {
    id: 'key',
    title: 'Instance or key',
    narrow: 'title',
    width: '11rem',
    oneLine: true,
    cell: (letter) => <LetterLink letter={letter}>{visible(letter.instanceId)}</LetterLink>,
  },
  { id: 'error', title: 'Error', narrow: 'text', oneLine: true, cell: (letter) => errorLine(letter) },
  {
    id: 'attempts',
    title: 'Attempts',
    numeric: true,
    width: '5.5rem',
    cell: ({ dequeueCount }) => grouped(dequeueCount),
  },
  {
    id: 'age',
    title: 'Failed',
    width: '6.5rem',
    cell: ({ lastFailureAtUtc }) => <Time at={lastFailureAtUtc} />,
  },
]

export function GroupLetters({
  group,
  read,
}: {
  readonly group: SignatureGroup
  readonly read: UseQueryResult<Page<LetterItem>>
}) {
  const navigate = useNavigate()
  const { rows, hold } = useSteady(group.signature, read.data?.items ?? [], keyOf)
  const cursor = useCursor(rows.length)
  const open = () => {
    const letter = rows[cursor.index]
    if (letter === undefined) return
    const { engine, rowKey } = letter
    void navigate({ to: '/letters/$engine/$rowKey', params: { engine, rowKey } })
  }
  useKeys('Letters of the signature', [
    ...cursor.keys,
    { keys: 'o', does: 'open the letter', run: open },
    { keys: 'Enter', does: 'open the letter', run: open },
  ])
  return (
    <Panel
      title="Letters"
      beside={
        <LettersLink filter={{ signature: group.signature }}>All {grouped(group.total)} letters</LettersLink>
      }
    >
      <Shown read={read} what="letters">
        {() =>
          rows.length === 0 ? (
            <Empty title="No letters left.">Retention has removed its letters.</Empty>
          ) : (
            <div {...hold}>
              <Table
                label="Letters of the signature, the newest first"
                columns={COLUMNS}
                rows={rows}
                keyOf={keyOf}
                current={cursor}
              />
            </div>
          )
        }
      </Shown>
    </Panel>
  )
}
