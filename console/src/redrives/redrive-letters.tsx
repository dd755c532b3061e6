/** What became of each letter of a redrive, by outcome and page by page. */
import { NativeSelect } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { redriveLettersQuery } from '../api/redrive-queries.ts'
import {
  isSending,
  OUTCOMES,
  type RedriveAction,
  type RedriveDetail,
  type RedriveLetter,
} from '../api/redrive-types.ts'
import { LetterLink } from '../kit/links.tsx'
import { Empty, Panel, Shown } from '../kit/page.tsx'
import { PageTurner, usePages } from '../kit/page-turner.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { visible } from '../kit/visible.ts'
import { outcomeWord, reasonWords } from './redrive-words.ts'

const route = getRouteApi('/redrives/$id')

const columnsFor = (action: RedriveAction): readonly Column<Row>[] => [
  {
    id: 'outcome',
    title: 'Outcome',
    width: '9rem',
    cell: ({ member }) => outcomeWord(action, member.outcome),
  },
  {
    id: 'letter',
    title: 'Letter',
    narrow: 'title',
    width: '22rem',
    oneLine: true,
    cell: ({ member: { engine, rowKey } }) =>
      engine === null || rowKey === null ? (
        'Removed by retention'
      ) : (
        <LetterLink letter={{ engine, rowKey }}>
          {engine} {visible(rowKey)}
        </LetterLink>
      ),
  },
  {
    id: 'destination',
    title: 'Destination',
    width: '12rem',
    oneLine: true,
    cell: ({ member }) => (member.destination === '' ? '–' : visible(member.destination)),
  },
  {
    id: 'why',
    title: 'Why',
    narrow: 'text',
    cell: ({ member: { reason, detail } }) => (
      <span className="wrapped">
        {reason === null ? '' : reasonWords(reason)}
        {detail === null ? '' : `${reason === null ? '' : ': '}${detail}`}
      </span>
    ),
  },
]

/** Removed letters have no name: the place is the key. */
interface Row {
  readonly place: number
  readonly member: RedriveLetter
}

export function RedriveLetters({ redrive }: { readonly redrive: RedriveDetail }) {
  const { outcome: asked } = route.useSearch()
  const navigate = route.useNavigate()
  const outcome = OUTCOMES.find((each) => each === asked) ?? null
  const pages = usePages(`${redrive.id} ${outcome}`)
  const read = useQuery(redriveLettersQuery(redrive.id, outcome, pages.token))
  const outcomes = OUTCOMES.filter(
    (each) => isSending(redrive.action) || (each !== 'returned' && each !== 'unconfirmed'),
  )
  return (
    <Panel
      title="Letters"
      beside={
        <NativeSelect
          size="xs"
          aria-label="Outcome"
          data={[
            { value: '', label: 'All outcomes' },
            ...outcomes.map((each) => ({ value: each, label: outcomeWord(redrive.action, each) })),
          ]}
          value={outcome ?? ''}
          onChange={(event) => {
            const chosen = event.currentTarget.value
            void navigate({
              search: chosen === '' ? {} : { outcome: chosen },
              replace: true,
              resetScroll: false,
            })
          }}
        />
      }
    >
      <Shown read={read} what="letters">
        {({ items, continuationToken }) => (
          <>
            {items.length === 0 ? (
              <Empty title={outcome === null ? 'No letters.' : 'No letters with this outcome.'}>
                {outcome !== null && 'Choose another outcome, or all.'}
              </Empty>
            ) : (
              <Table
                label="Letters of the redrive"
                columns={columnsFor(redrive.action)}
                rows={items.map((member, place) => ({ member, place }))}
                keyOf={({ place, member }) =>
                  member.rowKey === null ? `${place}` : `${member.engine}/${member.rowKey}`
                }
              />
            )}
            <PageTurner pages={pages} next={continuationToken} rows={items.length} />
          </>
        )}
      </Shown>
    </Panel>
  )
}
