/** The event that is next in its service: why it died, whether it may be published, and what would be. */
import { Alert, Button, Code, Group, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { bytesOf } from '../../../src/client/bytes.ts'
import { reasonOf } from '../api/call.ts'
import type { LetterItem, RetryPreview } from '../api/types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { type FactList, Facts } from '../kit/facts.tsx'
import { Shown } from '../kit/page.tsx'
import { ShownBytes } from '../kit/shown-bytes.tsx'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { dryRun, type KafkaEvent, kafkaEventQuery } from './kafka-queries.ts'

export function NextEvent({ letter }: { readonly letter: LetterItem }) {
  const event = useQuery(kafkaEventQuery(letter))
  const rehearsal = useMutation({ mutationFn: () => dryRun(letter) })
  return (
    <Stack gap="sm">
      <Shown read={event} what="the event">
        {(found) => (
          <>
            {found !== null && <Verdict event={found} />}
            <Facts of={factsOf(letter, found)} />
          </>
        )}
      </Shown>
      <Group gap="xs">
        <ActButton
          needs="operator"
          variant="default"
          loading={rehearsal.isPending}
          onClick={() => rehearsal.mutate()}
        >
          Dry run
        </ActButton>
        <Button
          variant="default"
          renderRoot={(props) => (
            <Link
              to="/letters/$engine/$rowKey"
              params={{ engine: letter.engine, rowKey: letter.rowKey }}
              {...props}
            />
          )}
        >
          Open the letter
        </Button>
      </Group>
      <div aria-live="polite">
        {rehearsal.error !== null && (
          <Alert role="note" color="red" title="It would not be published">
            {reasonOf(rehearsal.error)}
          </Alert>
        )}
        {rehearsal.data !== undefined && <Rehearsed preview={rehearsal.data} />}
      </div>
    </Stack>
  )
}

function Verdict({ event: { state, reasons, warnings } }: { readonly event: KafkaEvent }) {
  return (
    <>
      {state === 'uncertain' && (
        <Alert role="note" color="yellow" title="Nobody knows whether it was published">
          Its last publish was never acknowledged. Sending it again carries the same event id, so that the
          consumer can drop the copy; docs/kafka.md says how to decide.
        </Alert>
      )}
      {(state === 'claimed' || state === 'publishing') && (
        <Alert role="note" color="blue" title="It is on its way">
          Somebody is publishing it right now.
        </Alert>
      )}
      {reasons.length > 0 && (
        <Alert role="note" color="red" title="It is quarantined">
          It must not be published as it is: <strong>{words(reasons)}</strong>. Edit and retry it, give it to
          its service, or discard it.
        </Alert>
      )}
      {warnings.length > 0 && (
        <Text size="sm">
          Worth a look: <strong>{words(warnings)}</strong>
        </Text>
      )}
    </>
  )
}

const words = (names: readonly string[]): string => names.map((name) => name.replaceAll('_', ' ')).join(', ')

const factsOf = (letter: LetterItem, event: KafkaEvent | null): FactList => ({
  Error: `${letter.errorClass}: ${letter.errorMessage}`,
  Died: <Time at={letter.lastFailureAtUtc} />,
  Deaths: grouped(letter.dequeueCount),
  Queue: letter.originalQueue ?? undefined,
  Record: event === null ? undefined : `${event.topic}, partition ${event.partition}, offset ${event.offset}`,
  Key: event?.key ?? undefined,
  Type: event?.type || undefined,
  Correlation: letter.correlationId,
  'DLQ id': event === null ? undefined : <Code>{event.dlqId}</Code>,
})

function Rehearsed({ preview }: { readonly preview: RetryPreview }) {
  const { payload, payloadEncoding } = preview
  const bytes = useMemo(() => bytesOf(payload, payloadEncoding), [payload, payloadEncoding])
  return (
    <Alert role="note" color="teal" title={`It would be published to ${preview.queue}`}>
      <Stack gap="xs">
        <Facts
          of={{
            Key: preview.reference || '–',
            Type: preview.kind || '–',
            Correlation: preview.correlationId,
          }}
        />
        <ShownBytes bytes={bytes} label="Value" />
        <Text size="sm">Nothing was written. To publish it, open the letter and retry it.</Text>
      </Stack>
    </Alert>
  )
}
