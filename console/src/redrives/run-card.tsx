/** One run with its reason, its numbers, and the letters that failed. */
import { Group, Stack, Text } from '@mantine/core'
import type { Run } from '../acts/run.ts'
import { RunBar } from '../acts/run-bar.tsx'
import { RunButtons } from '../acts/run-buttons.tsx'
import { LetterLink } from '../kit/links.tsx'
import { Panel } from '../kit/page.tsx'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'

export function RunCard({ run }: { readonly run: Run }) {
  return (
    <Panel>
      <Group justify="space-between" align="flex-start">
        <div>
          <Text fw={600} className="wrapped">
            {run.sentence}
          </Text>
          <Text size="sm" c="var(--quiet)">
            By {run.by}, begun <Time at={run.startedAt} />
            {run.endedAt !== null && (
              <>
                , ended <Time at={run.endedAt} />
              </>
            )}
            {run.perSecond === null ? '' : `, at most ${grouped(run.perSecond)} per second`}
          </Text>
          {run.reason.trim() !== '' && (
            <Text size="sm" className="wrapped">
              Because: {run.reason}
            </Text>
          )}
        </div>
        <RunButtons run={run} />
      </Group>
      <RunBar run={run} />
      {run.failures.length > 0 && (
        <details>
          <summary>
            {run.failures.length < run.failed
              ? `The first ${grouped(run.failures.length)} that failed`
              : 'Letters that failed'}
          </summary>
          <Stack component="ul" gap={4} mt={4}>
            {run.failures.map(({ engine, rowKey, reason }) => (
              <li key={`${engine}/${rowKey}`} className="wrapped">
                <LetterLink letter={{ engine, rowKey }}>
                  {engine} {rowKey}
                </LetterLink>
                : {reason}
              </li>
            ))}
          </Stack>
        </details>
      )}
    </Panel>
  )
}
