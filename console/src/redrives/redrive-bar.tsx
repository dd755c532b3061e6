/** How far a redrive is: a bar whose parts are the numbers under it, which add up to what was planned. */
import { Anchor, Progress, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { DONE_WORDS } from '../acts/act.ts'
import { isSending, type Redrive } from '../api/redrive-types.ts'
import { grouped } from '../time/format.ts'
import { type NumberWord, outcomesOf, paceOf, partsOf, resumedWords, titleOf } from './redrive-words.ts'

export function RedriveBar({ redrive }: { readonly redrive: Redrive }) {
  const { action, counts, state, resumed } = redrive
  const outcomes = outcomesOf(action, counts)
  const pace = state === 'running' || state === 'canary' ? paceOf(redrive) : null
  const restarts = resumedWords(resumed)
  return (
    <div>
      <Progress.Root size="lg" aria-label={titleOf(redrive)}>
        {sectionsOf(redrive).map(({ count, word, colour }) => (
          <Progress.Section
            key={word}
            value={counts.planned === 0 ? 0 : (count / counts.planned) * 100}
            color={colour}
            aria-label={`${word}: ${grouped(count)} of ${grouped(counts.planned)}`}
          />
        ))}
      </Progress.Root>
      <Text size="sm" className="numbers prose" mt={4}>
        {grouped(counts.planned)} planned = <Sum id={redrive.id} of={partsOf(action, counts)} />
      </Text>
      {outcomes.length > 0 && (
        <Text size="sm" className="numbers prose">
          {grouped(counts.sent)} {DONE_WORDS[action]} = <Sum id={redrive.id} of={outcomes} />
        </Text>
      )}
      {(pace !== null || restarts !== null) && (
        <Text size="sm" c="var(--quiet)">
          {[pace, restarts].filter((part) => part !== null).join('. ')}
        </Text>
      )}
      <Note redrive={redrive} />
    </div>
  )
}

interface Section {
  readonly count: number
  readonly word: string
  readonly colour: string
}

function sectionsOf({ action, counts }: Redrive): readonly Section[] {
  const sent: readonly Section[] = isSending(action)
    ? [
        { count: counts.confirmed, word: 'confirmed', colour: 'teal.7' },
        { count: counts.returned, word: 'returned', colour: 'grape.7' },
        { count: counts.unconfirmed, word: 'unconfirmed', colour: 'blue.6' },
      ]
    : [{ count: counts.sent, word: DONE_WORDS[action], colour: 'teal.7' }]
  return [
    ...sent,
    { count: counts.skipped, word: 'skipped', colour: 'gray.6' },
    { count: counts.failed, word: 'failed', colour: 'red.7' },
  ]
}

/** Each number leads to the letters behind it. */
function Sum({ id, of }: { readonly id: string; readonly of: readonly NumberWord[] }) {
  return of.map(({ outcome, count, word }, place) => (
    <Fragment key={word}>
      {place > 0 && ' + '}
      <span className="redrive-number">
        {outcome === null || count === 0 ? (
          `${grouped(count)} ${word}`
        ) : (
          <Anchor
            inherit
            renderRoot={(props) => (
              <Link to="/redrives/$id" params={{ id }} search={{ outcome }} {...props} />
            )}
          >
            {grouped(count)} {word}
          </Anchor>
        )}
      </span>
    </Fragment>
  ))
}

/** What is to be said of it; of the states that need a reason, the sentence has it. */
function Note({ redrive: { state, note } }: { readonly redrive: Redrive }) {
  if (note === null || state === 'stopped' || state === 'paused' || state === 'cancelled') return null
  return (
    <Text size="sm" className="wrapped">
      {note}
    </Text>
  )
}
