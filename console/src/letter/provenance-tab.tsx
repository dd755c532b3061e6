/** Where it came from, under which names it is known elsewhere, and where it went. */

import { Stack, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import type { LetterDetail, LetterFilter } from '../api/types.ts'
import { Fact, Facts } from '../kit/facts.tsx'
import { LettersLink, SignatureLink } from '../kit/links.tsx'
import { visible } from '../kit/visible.ts'
import { FullTime } from '../time/time.tsx'
import { traceOf } from './headers.ts'
import { originOf } from './provenance.ts'

const REASONS: Readonly<Record<string, string>> = {
  attempts: 'attempts used up',
  expired: 'expired',
  rejected: 'rejected by a consumer',
  failed: 'failed permanently',
}

export function ProvenanceTab({ letter }: { readonly letter: LetterDetail }) {
  return (
    <Stack gap="lg">
      <Origin letter={letter} />
      <Names letter={letter} />
      {letter.sentAs !== null && (
        <Section title="Sent">
          <Fact name="As">
            <code>{letter.sentAs}</code>
          </Fact>
          <Fact name="To">{letter.sentTo}</Fact>
          <Fact name="By">{letter.resolvedBy}</Fact>
          <Moment name="At" at={letter.resolvedAtUtc} />
          <Moment name="Confirmed" at={letter.confirmedAtUtc} />
        </Section>
      )}
    </Stack>
  )
}

function Origin({ letter }: { readonly letter: LetterDetail }) {
  const { source, engine, originalQueue } = letter
  return (
    <Section title="Origin">
      <Shared name="Source" value={source} filter={{ source }} />
      <Shared name="Engine" value={engine} filter={{ engine }} />
      {originalQueue !== null && <Shared name="Queue" value={originalQueue} filter={{ originalQueue }} />}
      {source !== 'kafka' && <Fact name="Partition of the queue">{letter.originalPartition}</Fact>}
      {originOf(letter).map(({ name, value }) => (
        <Fact key={name} name={name}>
          {value}
        </Fact>
      ))}
      <Fact name="Source id">
        <code>{visible(letter.sourceId)}</code>
      </Fact>
      <Moment name="Made" at={letter.itemCreatedAtUtc} />
      <Fact name="Reference">{letter.reference}</Fact>
      <Fact name="Reason">{REASONS[letter.reason] ?? letter.reason}</Fact>
      <Fact name="Failed by">{letter.failedBy}</Fact>
      <Moment name="First failure" at={letter.firstFailureAtUtc} />
      <Moment name="Last failure" at={letter.lastFailureAtUtc} />
      <Fact name="Dead queue">{letter.deadQueue}</Fact>
    </Section>
  )
}

function Names({ letter }: { readonly letter: LetterDetail }) {
  const trace = traceOf(letter.headers)
  const { instanceId, correlationId, signature } = letter
  return (
    <Section title="Names">
      <Shared name="Instance or key" value={instanceId} filter={{ instanceId }} />
      <Shared name="Correlation id" value={correlationId} filter={{ correlationId }} />
      {trace !== null && (
        <>
          <Fact name="Trace">
            <code>{trace.traceId}</code>
          </Fact>
          <Fact name="Span">
            <code>{trace.spanId}</code>
          </Fact>
        </>
      )}
      <Fact name="Signature">
        <SignatureLink signature={signature}>{signature}</SignatureLink>
      </Fact>
      <Fact name="Row key">
        <code>{letter.rowKey}</code>
      </Fact>
      <Fact name="Version">{letter.version}</Fact>
    </Section>
  )
}

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section aria-label={title}>
      <Title order={2} size="h5" mb={4}>
        {title}
      </Title>
      <Facts>{children}</Facts>
    </section>
  )
}

/** A fact that other letters may share: it leads to them. */
function Shared({
  name,
  value,
  filter,
}: {
  readonly name: string
  readonly value: string
  readonly filter: LetterFilter
}) {
  return (
    <Fact name={name}>
      <LettersLink filter={filter}>{visible(value)}</LettersLink>
    </Fact>
  )
}

function Moment({ name, at }: { readonly name: string; readonly at: string | null }) {
  return <Fact name={name}>{at === null ? null : <FullTime at={at} />}</Fact>
}
