/** The facts that an operator asks for first; Provenance has the rest. */
import { useQuery } from '@tanstack/react-query'
import { signatureQuery } from '../api/queries.ts'
import type { LetterDetail } from '../api/types.ts'
import { Fact, Facts } from '../kit/facts.tsx'
import { LettersLink, SignatureLink } from '../kit/links.tsx'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { traceOf } from './headers.ts'

export function FactsPanel({ letter }: { readonly letter: LetterDetail }) {
  const { originalQueue, instanceId, correlationId, signature } = letter
  const group = useQuery(signatureQuery(signature)).data
  return (
    <Facts>
      <Fact name="Queue">
        {originalQueue && <LettersLink filter={{ originalQueue }}>{visible(originalQueue)}</LettersLink>}
      </Fact>
      <Fact name="Attempts">{grouped(letter.dequeueCount)}</Fact>
      <Fact name="Cause">
        <SignatureLink signature={signature}>
          {group === undefined
            ? 'all letters with this error'
            : group.total === 1
              ? 'the only letter with this error'
              : `${grouped(group.total)} letters with this error, ${grouped(group.open)} pending`}
        </SignatureLink>
      </Fact>
      <Fact name="Instance or key">
        <LettersLink filter={{ instanceId }}>{visible(instanceId)}</LettersLink>
      </Fact>
      <Fact name="Correlation id">
        <LettersLink filter={{ correlationId }}>{visible(correlationId)}</LettersLink>
      </Fact>
      <Fact name="Trace">{traceOf(letter.headers)?.traceId}</Fact>
      <Fact name="Failed by">{letter.failedBy}</Fact>
      <Fact name="First failure">
        <Time at={letter.firstFailureAtUtc} />
      </Fact>
      <Fact name="Last failure">
        <Time at={letter.lastFailureAtUtc} />
      </Fact>
      <Fact name="Dead queue">{letter.deadQueue}</Fact>
    </Facts>
  )
}
