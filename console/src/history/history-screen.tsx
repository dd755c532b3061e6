/** History: every run of an engine and every act on a letter, found by filters, opened with input and output, and exported. */

import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { historyPageQuery } from '../api/queries.ts'
import type { HistoryItem } from '../api/types.ts'
import { useKeys } from '../keys/keys.tsx'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { PageTurner, usePages } from '../kit/page-turner.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { visible } from '../kit/visible.ts'
import { duration } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { EntryDrawer } from './entry-drawer.tsx'
import { EntryLink, entryName } from './entry-link.tsx'
import { ExportHistory } from './export-history.tsx'
import { FilterBar } from './filter-bar.tsx'
import { filterIn, type HistoryAsked } from './history-filter.ts'
import { HistoryLink } from './history-link.tsx'
import { RunBadge } from './run-badge.tsx'

export function HistoryScreen() {
  const { entry, ...search } = useSearch({ from: '/history' })
  const filter = filterIn(search)
  const navigate = useNavigate({ from: '/history' })
  const pages = usePages(JSON.stringify(filter))
  // Rows that move while they are read are worse than rows that are some seconds old: it is read anew on request.
  const read = useQuery({ ...historyPageQuery(filter, pages.token), refetchOnWindowFocus: false })
  const rows = read.data?.items ?? []
  const cursor = useCursor(rows.length)
  const open = (name: string | undefined) =>
    void navigate({ search: { ...filter, ...(name === undefined ? {} : { entry: name }) } })
  const openCurrent = () => {
    const row = rows[cursor.index]
    if (row !== undefined) open(entryName(row))
  }
  useKeys('History', [
    ...cursor.keys,
    { keys: 'o', does: 'open the entry', run: openCurrent },
    { keys: 'Enter', does: 'open the entry', run: openCurrent },
    {
      keys: 'Escape',
      does: 'close the entry',
      run: () => (entry === undefined ? undefined : open(undefined)),
    },
  ])
  return (
    <Page
      title="History"
      lead="Runs of engines and acts on letters, newest first."
      beside={
        <Group gap="xs">
          <Button variant="default" loading={read.isFetching} onClick={() => void read.refetch()}>
            Refresh
          </Button>
          <ExportHistory filter={filter} />
        </Group>
      }
    >
      <FilterBar filter={filter} apply={(asked) => void navigate({ search: asked })} />
      <Shown read={read} what="history">
        {({ items, continuationToken }) => (
          <>
            {items.length === 0 ? (
              <Nothing filter={filter} hasMore={continuationToken !== null} />
            ) : (
              <Table
                label="History"
                columns={columnsFor(filter)}
                rows={items}
                keyOf={entryName}
                current={cursor}
              />
            )}
            <PageTurner pages={pages} next={continuationToken} rows={items.length} />
          </>
        )}
      </Shown>
      <EntryDrawer name={entry ?? null} close={() => open(undefined)} />
    </Page>
  )
}

/** A page that found nothing may have looked at only a part: the server looks through so many rows at a time. */
function Nothing({ filter, hasMore }: { readonly filter: HistoryAsked; readonly hasMore: boolean }) {
  if (hasMore)
    return (
      <Empty title="No match so far.">
        The newest ten thousand rows were searched. Go to the next page, or narrow the time.
      </Empty>
    )
  return Object.keys(filter).length === 0 ? (
    <Empty title="Nothing has happened yet.">
      Runs of engines and acts on letters are written down here. Workers in other languages put theirs on
      record with <code>POST /api/history</code>.
    </Empty>
  ) : (
    <Empty title="Nothing matches.">
      Leave a filter out: all of them must hold. What is older than the retention is gone; see Settings.
    </Empty>
  )
}

const columnsFor = (filter: HistoryAsked): readonly Column<HistoryItem>[] => [
  {
    id: 'time',
    title: 'Time',
    width: '8rem',
    cell: (item) => (
      <EntryLink filter={filter} entry={item}>
        <Time at={item.createdAtUtc} />
      </EntryLink>
    ),
  },
  { id: 'engine', title: 'Engine', width: '9rem', cell: ({ engine }) => engine },
  {
    id: 'operation',
    title: 'Operation',
    narrow: 'title',
    width: '13rem',
    cell: ({ operation }) => operation,
  },
  {
    id: 'subject',
    title: 'Subject',
    narrow: 'text',
    oneLine: true,
    cell: ({ instanceId }) => (
      <HistoryLink filter={{ instanceId }} label={`History of ${instanceId}`}>
        {visible(instanceId)}
      </HistoryLink>
    ),
  },
  { id: 'status', title: 'Status', width: '7rem', cell: ({ status }) => <RunBadge status={status} /> },
  {
    id: 'duration',
    title: 'Duration',
    numeric: true,
    width: '6rem',
    cell: ({ durationMs }) => duration(durationMs),
  },
  { id: 'actor', title: 'Who', width: '9rem', oneLine: true, cell: ({ actor }) => actor ?? '–' },
  {
    id: 'correlation',
    title: 'Correlation',
    narrow: 'hidden',
    oneLine: true,
    cell: ({ correlationId }) => (
      <HistoryLink filter={{ correlationId }} label={`History with correlation ${correlationId}`}>
        {visible(correlationId)}
      </HistoryLink>
    ),
  },
]
