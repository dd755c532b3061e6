/** One entry of history: what went in, what came out, what went wrong, by whom and why. */

import { Code, Drawer, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { bytesOf } from '../../../src/client/bytes.ts'
import { historyEntryQuery } from '../api/queries.ts'
import type { HistoryDetail } from '../api/types.ts'
import { type FactList, Facts } from '../kit/facts.tsx'
import { LetterLink } from '../kit/links.tsx'
import { Empty, Shown } from '../kit/page.tsx'
import { ShownBytes } from '../kit/shown-bytes.tsx'
import { visible } from '../kit/visible.ts'
import { duration } from '../time/format.ts'
import { FullTime } from '../time/time.tsx'
import { entryOf } from './entry-link.tsx'
import { HistoryLink } from './history-link.tsx'
import { RunBadge } from './run-badge.tsx'

export interface EntryDrawerProps {
  /** As `engine/rowKey`; null: closed. */
  readonly name: string | null
  close(): void
}

export function EntryDrawer({ name, close }: EntryDrawerProps) {
  return (
    <Drawer
      opened={name !== null}
      onClose={close}
      position="right"
      size="xl"
      title="Entry of history"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {name !== null && <Entry key={name} name={name} />}
    </Drawer>
  )
}

function Entry({ name }: { readonly name: string }) {
  const { engine, rowKey } = entryOf(name)
  const read = useQuery(historyEntryQuery(engine, rowKey))
  return (
    <Shown
      read={read}
      what="the entry"
      unknown={
        <Empty title="Entry not found.">
          The address may be incomplete, the entry may belong to another server, or retention has removed it.
        </Empty>
      }
    >
      {(entry) => (
        <Stack gap="lg">
          <Facts of={factsOf(entry)} />
          {entry.error !== null && (
            <section>
              <Title order={2} size="h5" mb="xs">
                Error
              </Title>
              <pre className="bytes">{entry.error}</pre>
            </section>
          )}
          <Side title="Input" text={entry.input} encoding={entry.inputEncoding} />
          <Side title="Output" text={entry.output} encoding={entry.outputEncoding} />
        </Stack>
      )}
    </Shown>
  )
}

const factsOf = (entry: HistoryDetail): FactList => ({
  Operation: `${entry.engine} · ${entry.operation}`,
  Status: <RunBadge status={entry.status} />,
  Time: <FullTime at={entry.createdAtUtc} />,
  Duration: duration(entry.durationMs),
  Subject: <HistoryLink filter={{ instanceId: entry.instanceId }}>{visible(entry.instanceId)}</HistoryLink>,
  Correlation: (
    <HistoryLink filter={{ correlationId: entry.correlationId }}>{visible(entry.correlationId)}</HistoryLink>
  ),
  'Done by': entry.actor ?? undefined,
  Notes: entry.notes ?? undefined,
  Letter:
    entry.letter === null ? undefined : (
      <LetterLink letter={entry.letter}>{`${entry.letter.engine}/${entry.letter.rowKey}`}</LetterLink>
    ),
  'Row key': <Code>{entry.rowKey}</Code>,
})

function Side({
  title,
  text,
  encoding,
}: {
  readonly title: string
  readonly text: string | null
  readonly encoding: HistoryDetail['inputEncoding']
}) {
  const bytes = useMemo(() => {
    if (text === null) return null
    return bytesOf(text, encoding ?? 'utf8')
  }, [text, encoding])
  if (bytes === null) return null
  return (
    <section>
      <Title order={2} size="h5" mb="xs">
        {title}
      </Title>
      <ShownBytes bytes={bytes} label={title} />
    </section>
  )
}
