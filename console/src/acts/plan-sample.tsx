/** The first letters of a plan as they would be sent, each opened on request; with a repair, what it changes in them. */
import { Group, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { bytesOf } from '../../../src/client/bytes.ts'
import {
  isSending,
  type RedriveAction,
  type RedriveDetail,
  type RedriveSample,
} from '../api/redrive-types.ts'
import { Facts } from '../kit/facts.tsx'
import { LetterLink } from '../kit/links.tsx'
import { ShownBytes } from '../kit/shown-bytes.tsx'
import { visible } from '../kit/visible.ts'
import { DiffView } from '../letter/diff-view.tsx'
import '../letter/letter.css'
import { byteSize, grouped } from '../time/format.ts'
import { nameOf } from './letter-name.ts'

export function PlanSample({ plan }: { readonly plan: RedriveDetail }) {
  const { sample, action, numbers, repair } = plan
  const refused = sample.filter(({ refusal }) => refusal !== null).length
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {numbers.eligible > sample.length
          ? `The first ${grouped(sample.length)} of them`
          : sample.length === 1
            ? 'The letter'
            : 'The letters'}
        {isSending(action) && `: ${sum(sample.length - refused, refused)}`}
      </Text>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="plan-letters" aria-label="First letters of the plan" tabIndex={0}>
        {sample.map((letter, place) => (
          <Sample
            key={nameOf(letter)}
            letter={letter}
            action={action}
            // What a repair does is looked at first.
            isOpenAtFirst={place === 0 && repair !== null}
          />
        ))}
      </section>
    </div>
  )
}

function sum(possible: number, refused: number): string {
  if (possible + refused === 1) return refused === 0 ? 'it can be sent' : 'it cannot be sent'
  return refused === 0 ? `all ${possible} can be sent` : `${possible} can be sent, ${refused} cannot`
}

interface SampleProps {
  readonly letter: RedriveSample
  readonly action: RedriveAction
  readonly isOpenAtFirst: boolean
}

function Sample({ letter, action, isOpenAtFirst }: SampleProps) {
  const [isOpen, setOpen] = useState(isOpenAtFirst)
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong>
          {letter.engine} {visible(letter.instanceId)}
        </strong>{' '}
        <span aria-hidden>{letter.refusal === null ? '✓' : '✗'}</span> {verdictOf(letter, action)}
      </summary>
      {isOpen && (
        <Stack gap="xs" className="plan-letter">
          <Group justify="space-between" wrap="nowrap" align="flex-start">
            <Text size="sm" lineClamp={3} className="wrapped">
              {letter.errorMessage === '' ? 'No message' : visible(letter.errorMessage)}
            </Text>
            <Text size="sm" className="plan-open">
              <LetterLink letter={letter}>Open the letter</LetterLink>
            </Text>
          </Group>
          {letter.refusal === null && <Outgoing letter={letter} />}
        </Stack>
      )}
    </details>
  )
}

function verdictOf(
  { refusal, payload, payloadEncoding, payloadTruncated, queue }: RedriveSample,
  action: RedriveAction,
): string {
  if (refusal !== null) return `Not possible: ${refusal}`
  if (action === 'discard') return 'ends, and is not sent'
  if (action === 'restore') return 'becomes pending again'
  const size = payload === null ? '' : byteSize(bytesOf(payload, payloadEncoding ?? 'utf8').length)
  return `${payloadTruncated ? 'more than ' : ''}${size} to ${visible(queue ?? 'where it came from')}`
}

function Outgoing({ letter }: { readonly letter: RedriveSample }) {
  const { payload, payloadEncoding, payloadTruncated, before, encoding, kind, reference } = letter
  if (payload === null) return null
  const isText = (payloadEncoding ?? 'utf8') === 'utf8'
  return (
    <>
      <Facts of={{ Kind: kind, Encoding: encoding, Reference: reference }} />
      {before !== null && isText && before.payloadEncoding === 'utf8' ? (
        <DiffView before={before.payload} after={payload} />
      ) : (
        <ShownBytes bytes={bytesOf(payload, payloadEncoding ?? 'utf8')} label="Payload" />
      )}
      {payloadTruncated && <Text size="sm">This is its beginning; it is sent whole.</Text>}
    </>
  )
}
