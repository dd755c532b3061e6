/** The columns of groups, and their totals. */
import { Group, Table as Plain, Text } from '@mantine/core'
import type { LetterCounts, LetterFilter, SignatureGroup } from '../api/types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { Count, SignatureLink } from '../kit/links.tsx'
import { Sparkline } from '../kit/sparkline.tsx'
import type { Column } from '../kit/table.tsx'
import { Time } from '../time/time.tsx'
import { lettersOf, nameOf, trendWords } from './group.ts'

type Act = 'retry' | 'discard'

/** `filter` is that of the screen: numbers lead to the letters that it lets through. */
export const groupColumns = (
  filter: LetterFilter,
  act: (name: Act, group: SignatureGroup) => void,
): readonly Column<SignatureGroup>[] => [
  {
    id: 'title',
    title: 'Signature',
    cell: (group) => (
      <div className="group-title">
        <span className="group-name">
          <SignatureLink signature={group.signature}>{nameOf(group)}</SignatureLink>
        </span>
        <Text size="xs" c="var(--quiet)" truncate>
          {[...group.engines, ...group.originalQueues].join(' · ')}
        </Text>
      </div>
    ),
  },
  { id: 'sources', title: 'Sources', width: '7rem', cell: ({ sources }) => sources.join(', ') },
  {
    id: 'pending',
    title: 'Pending',
    numeric: true,
    width: '5rem',
    cell: ({ open, signature }) => (
      <Count
        of={open}
        filter={{ ...filter, signature, status: 'Pending' }}
        label="pending of this signature"
      />
    ),
  },
  {
    id: 'total',
    title: 'Total',
    numeric: true,
    width: '5rem',
    cell: ({ total, signature }) => (
      <Count of={total} filter={{ ...filter, signature }} label="letters of this signature" />
    ),
  },
  {
    id: 'trend',
    title: '24 h',
    width: '7.5rem',
    cell: ({ trend }) => <Sparkline values={trend} label={trendWords(trend)} />,
  },
  {
    id: 'first',
    title: 'First seen',
    width: '6.5rem',
    cell: ({ firstSeenAtUtc }) => <Time at={firstSeenAtUtc} />,
  },
  {
    id: 'last',
    title: 'Last seen',
    width: '6.5rem',
    cell: ({ lastSeenAtUtc }) => <Time at={lastSeenAtUtc} />,
  },
  {
    id: 'acts',
    title: 'Actions',
    narrow: 'act',
    width: '10rem',
    cell: (group) => (
      <Group gap={6} wrap="nowrap">
        <GroupAct group={group} word="Retry…" hotkey="r" run={() => act('retry', group)} />
        <GroupAct group={group} word="Discard…" hotkey="d" run={() => act('discard', group)} />
      </Group>
    ),
  },
]

function GroupAct({
  group,
  word,
  hotkey,
  run,
}: {
  readonly group: SignatureGroup
  readonly word: string
  readonly hotkey: string
  readonly run: () => void
}) {
  return (
    <ActButton
      size="compact-xs"
      variant="default"
      needs="operator"
      hotkey={hotkey}
      refusal={group.open === 0 ? 'None of its letters is pending.' : null}
      aria-label={`${word} ${lettersOf(group)}`}
      onClick={run}
    >
      {word}
    </ActButton>
  )
}

/** All letters that the filter lets through, whether or not their groups are shown. */
export function GroupFoot({
  totals,
  filter,
}: {
  readonly totals: LetterCounts['totals'] | undefined
  readonly filter: LetterFilter
}) {
  return (
    <Plain.Tr>
      <Plain.Th scope="row" colSpan={2}>
        {Object.keys(filter).length === 0 ? 'All letters of the office' : 'All letters that match'}
      </Plain.Th>
      <Plain.Td ta="right">
        {totals && (
          <Count of={totals.Pending} filter={{ ...filter, status: 'Pending' }} label="pending in all" />
        )}
      </Plain.Td>
      <Plain.Td ta="right">
        {totals && (
          <Count
            of={totals.Pending + totals.Resolved + totals.Expired}
            filter={filter}
            label="letters in all"
          />
        )}
      </Plain.Td>
      <Plain.Td colSpan={4} />
    </Plain.Tr>
  )
}
