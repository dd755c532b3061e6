/** The stack of the error: its chain unwrapped, frames of the application first; and the attempts compared. */
import { Stack, Text, Title } from '@mantine/core'
import { useMemo } from 'react'
import { errorLine } from '../acts/error-line.ts'
import type { LetterDetail } from '../api/types.ts'
import { Time } from '../time/time.tsx'
import { type ComparedAttempt, compareAttempts } from './attempts.ts'
import { chainOf, type ErrorLink, type Frame } from './stack.ts'

export function ErrorTab({ letter }: { readonly letter: LetterDetail }) {
  const chain = useMemo(() => chainOf(letter.errorStack ?? ''), [letter.errorStack])
  return (
    <Stack gap="lg">
      {chain.length === 0 ? (
        <Text size="sm" c="var(--quiet)">
          No stack was reported.
        </Text>
      ) : (
        chain.map((link, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a chain has no other names, and never changes its order
          <ChainLink key={place} link={link} isCause={place > 0} error={errorLine(letter)} />
        ))
      )}
      <Attempts letter={letter} />
    </Stack>
  )
}

function ChainLink({
  link: { heading, frames, details },
  isCause,
  error,
}: {
  readonly link: ErrorLink
  readonly isCause: boolean
  /** Stands at the top of the page. */
  readonly error: string
}) {
  const own = frames.filter(({ isOwn }) => isOwn)
  const others = frames.length - own.length
  return (
    <section aria-label={isCause ? 'Cause' : 'Stack'}>
      <Text size="sm" fw={600}>
        {isCause ? 'Caused by' : 'Stack'}
      </Text>
      {heading !== '' && heading !== error && <pre className="bytes">{heading}</pre>}
      {own.length > 0 && <Frames frames={own} />}
      {own.length === 0 && frames.length > 0 && (
        <Text size="sm" c="var(--quiet)">
          No frame is of the application itself.
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
        {letter.dequeueCount} {letter.dequeueCount === 1 ? 'attempt' : 'attempts'}
        {others > 0 ? `; errors of ${others} were not kept` : ''}.
        {compared.length > 1 && ' Differences from the attempt before are marked.'}
      </Text>
      <ol className="attempts">
        {compared.map((each) => (
          <Attempt key={each.attempt.number} compared={each} isOnly={compared.length === 1} />
        ))}
      </ol>
    </section>
  )
}

function Attempt({ compared, isOnly }: { readonly compared: ComparedAttempt; readonly isOnly: boolean }) {
  const { attempt, isSame, isOtherClass, isOtherStack, message } = compared
  return (
    <li>
      <Text size="sm" component="div">
        <strong>Attempt {attempt.number}</strong>, <Time at={attempt.failedAtUtc} />
        {attempt.failedBy === null ? '' : `, by ${attempt.failedBy}`}
        {isSame && ': the same error as before'}
        {isOtherStack && ', from another place in the code'}
      </Text>
      {!isSame && !isOnly && (
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
