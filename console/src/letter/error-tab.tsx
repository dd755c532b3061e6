/** The error: its chain unwrapped, frames of the application first, and the attempts compared. */
import { Stack, Text, Title } from '@mantine/core'
import { useMemo } from 'react'
import type { LetterDetail } from '../api/types.ts'
import { SignatureLink } from '../kit/links.tsx'
import { Time } from '../time/time.tsx'
import { type ComparedAttempt, compareAttempts } from './attempts.ts'
import { chainOf, type ErrorLink, type Frame } from './stack.ts'

export function ErrorTab({ letter }: { readonly letter: LetterDetail }) {
  const chain = useMemo(() => chainOf(letter.errorStack ?? ''), [letter.errorStack])
  return (
    <Stack gap="lg">
      <section aria-label="Message">
        <Title order={2} size="h5">
          {letter.errorClass === '' ? 'Error' : letter.errorClass}
        </Title>
        <pre className="bytes message">{letter.errorMessage}</pre>
        <Text size="sm" mt={4}>
          <SignatureLink signature={letter.signature}>All letters with this error</SignatureLink>
        </Text>
      </section>
      {chain.length === 0 ? (
        <Text size="sm" c="var(--quiet)">
          No stack came with it.
        </Text>
      ) : (
        chain.map((link, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a chain has no other names, and never changes its order
          <ChainLink key={place} link={link} isCause={place > 0} />
        ))
      )}
      <Attempts letter={letter} />
    </Stack>
  )
}

function ChainLink({
  link: { heading, frames, details },
  isCause,
}: {
  readonly link: ErrorLink
  readonly isCause: boolean
}) {
  const own = frames.filter(({ isOwn }) => isOwn)
  const others = frames.length - own.length
  return (
    <section aria-label={isCause ? 'Cause' : 'Stack'}>
      <Text size="sm" fw={600}>
        {isCause ? 'Caused by' : 'Stack'}
      </Text>
      {heading !== '' && <pre className="bytes">{heading}</pre>}
      {own.length > 0 && <Frames frames={own} />}
      {own.length === 0 && frames.length > 0 && (
        <Text size="sm" c="var(--quiet)">
          No frame of it is the application’s own.
        </Text>
      )}
      {details !== '' && <pre className="bytes details">{details}</pre>}
      {others > 0 && (
        <details className="frames">
          <summary>
            Whole stack: {frames.length} {frames.length === 1 ? 'frame' : 'frames'}, {others} of libraries and
            the runtime
          </summary>
          <Frames frames={frames} />
        </details>
      )}
    </section>
  )
}

function Frames({ frames }: { readonly frames: readonly Frame[] }) {
  return (
    <ol className="frames">
      {frames.map(({ text, isOwn }, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: frames repeat in recursions, and never change their order
        <li key={place} data-own={isOwn || undefined}>
          {text}
        </li>
      ))}
    </ol>
  )
}

function Attempts({ letter }: { readonly letter: LetterDetail }) {
  const compared = useMemo(() => compareAttempts(letter.attempts), [letter.attempts])
  const others = letter.dequeueCount - letter.attempts.length
  return (
    <section aria-label="Attempts">
      <Title order={2} size="h5" mb={4}>
        Attempts
      </Title>
      <Text size="sm" mb="xs">
        It was attempted {letter.dequeueCount} {letter.dequeueCount === 1 ? 'time' : 'times'}
        {others > 0 ? `; of ${others} only the number is on file` : ''}.
        {compared.length > 1 && ' What differs from the attempt before is marked.'}
      </Text>
      <ol className="attempts">
        {compared.map((each) => (
          <Attempt key={each.attempt.number} compared={each} />
        ))}
      </ol>
    </section>
  )
}

function Attempt({ compared }: { readonly compared: ComparedAttempt }) {
  const { attempt, isSame, isOtherClass, isOtherStack, message } = compared
  return (
    <li>
      <Text size="sm" component="div">
        <strong>Attempt {attempt.number}</strong>, <Time at={attempt.failedAtUtc} />
        {attempt.failedBy === null ? '' : `, by ${attempt.failedBy}`}
        {isSame && ': the same error as before'}
        {isOtherStack && ', from another place in the code'}
      </Text>
      {!isSame && (
        <pre className="bytes">
          {isOtherClass ? <mark>{attempt.errorClass}</mark> : attempt.errorClass}
          {attempt.errorClass === '' ? '' : ': '}
          {message.map(({ text, differs }, place) =>
            // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text have no other names
            differs ? <mark key={place}>{text}</mark> : text,
          )}
        </pre>
      )}
    </li>
  )
}
