/** Exports the entries that match as a file of JSON lines. It goes on beside everything else, and can be stopped. */
import { Button, Group, Text, Tooltip } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { reasonOf } from '../api/call.ts'
import { saveFile } from '../kit/save-file.ts'
import { grouped } from '../time/format.ts'
import { useToasts } from '../toasts/toasts.tsx'
import type { HistoryAsked } from './history-filter.ts'
import { MOST_EXPORTED, ndjsonOf, pagesOf, walkHistory } from './walk-history.ts'

const WHAT = `Saves what matches as JSON lines: the columns of the list, without input and output, and at most the newest ${grouped(MOST_EXPORTED)}.`

export function ExportHistory({ filter }: { readonly filter: HistoryAsked }) {
  const toasts = useToasts()
  const [count, setCount] = useState<number | null>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])

  const start = async () => {
    const stop = new AbortController()
    running.current = stop
    setCount(0)
    try {
      const { entries, isCut } = await walkHistory(pagesOf(filter, stop.signal), setCount)
      const at = new Date().toISOString().slice(0, 19).replaceAll(':', '')
      saveFile(`history-${at}.ndjson`, 'application/x-ndjson', ndjsonOf(entries))
      toasts.show({
        title: `${grouped(entries.length)} entries are exported`,
        ...(isCut
          ? {
              message:
                'There are more: these are the newest. Export the rest by giving a time before which they lie.',
            }
          : {}),
      })
    } catch (error) {
      if (!stop.signal.aborted)
        toasts.show({ title: 'History was not exported', message: reasonOf(error), tone: 'failed' })
    } finally {
      if (running.current === stop) {
        running.current = null
        setCount(null)
      }
    }
  }

  if (count === null)
    return (
      <Tooltip label={WHAT} multiline w="20rem">
        <Button variant="default" onClick={() => void start()}>
          Export
        </Button>
      </Tooltip>
    )
  return (
    <Group gap="xs" role="status">
      <Text size="sm">{grouped(count)} read…</Text>
      <Button variant="default" onClick={() => running.current?.abort()}>
        Stop the export
      </Button>
    </Group>
  )
}
