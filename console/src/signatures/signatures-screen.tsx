/** Signatures: letters grouped by their error, those with the most pending first. Where triage starts. */
import './signatures.css'
import { Button, Group, Stack, Text } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { usePlan } from '../acts/plan-context.ts'
import { countsQuery, signaturesQuery } from '../api/queries.ts'
import type { LetterFilter, SignatureGroup } from '../api/types.ts'
import { useKeys } from '../keys/keys.tsx'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { useRefusal } from '../kit/role.tsx'
import { useSteady } from '../kit/steady.ts'
import { Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { grouped } from '../time/format.ts'
import { Filters } from './filters.tsx'
import { lettersOf } from './group.ts'
import { GroupFoot, groupColumns } from './group-table.tsx'

const route = getRouteApi('/signatures')
const keyOf = ({ signature }: SignatureGroup) => signature

export function SignaturesScreen() {
  const filter = route.useSearch()
  const navigate = route.useNavigate()
  const plan = usePlan()
  const notAllowed = useRefusal('operator')
  const read = useInfiniteQuery(signaturesQuery(filter))
  const counts = useQuery(countsQuery('status', filter))
  const groups = read.data?.pages.flatMap(({ items }) => items) ?? []
  // While another list is read, the one before is shown; its rows have no place in the new one.
  const list = read.isPlaceholderData ? '' : JSON.stringify(filter)
  const { rows, hold } = useSteady(list, groups, keyOf)
  const cursor = useCursor(rows.length)

  const act = (name: 'retry' | 'discard', group: SignatureGroup) =>
    plan({
      act: name,
      filter: { ...filter, signature: group.signature, status: 'Pending' },
      what: lettersOf(group),
    })
  const open = ({ signature }: SignatureGroup) =>
    void navigate({ to: '/signatures/$signature', params: { signature } })
  const onCurrent = (run: (group: SignatureGroup) => void) => () => {
    const group = rows[cursor.index]
    if (group !== undefined) run(group)
  }
  const onPending = (name: 'retry' | 'discard') =>
    onCurrent((group) => {
      if (group.open > 0 && notAllowed === null) act(name, group)
    })
  useKeys('Signatures', [
    ...cursor.keys,
    { keys: 'o', does: 'open the signature', run: onCurrent(open) },
    { keys: 'Enter', does: 'open the signature', run: onCurrent(open) },
    { keys: 'r', does: 'retry its letters…', run: onPending('retry') },
    { keys: 'd', does: 'discard its letters…', run: onPending('discard') },
  ])

  return (
    <Page
      title="Signatures"
      lead="Letters with the same error form a group; ids, numbers and times are left out of the title."
    >
      <Filters
        filter={filter}
        change={(changed: LetterFilter) => void navigate({ search: changed, replace: true })}
      />
      <Shown read={read} what="signatures">
        {() =>
          rows.length === 0 ? (
            <NoGroups isFiltered={Object.keys(filter).length > 0} />
          ) : (
            <Stack gap="sm">
              <div {...hold}>
                <Table
                  label="Signatures"
                  columns={groupColumns(filter, act)}
                  rows={rows}
                  keyOf={keyOf}
                  current={cursor}
                  foot={<GroupFoot totals={counts.data?.totals} filter={filter} />}
                />
              </div>
              <Group justify="space-between">
                <Text size="sm" c="var(--quiet)">
                  {grouped(rows.length)} {rows.length === 1 ? 'group' : 'groups'} shown
                  {read.hasNextPage ? ', there are more' : ''}
                </Text>
                {read.hasNextPage && (
                  <Button
                    size="compact-sm"
                    variant="default"
                    loading={read.isFetchingNextPage}
                    onClick={() => void read.fetchNextPage()}
                  >
                    More
                  </Button>
                )}
              </Group>
            </Stack>
          )
        }
      </Shown>
    </Page>
  )
}

function NoGroups({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return <Empty title="No group matches.">Clear one of them to see more.</Empty>
  }
  return (
    <Empty title="No letters yet.">
      The first permanent failure shows up here. To see how that looks, start{' '}
      <code>bartleby serve --demo</code>.
    </Empty>
  )
}
