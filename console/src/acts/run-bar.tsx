/** How far a run is: a bar whose parts are the numbers under it, which add up to what was planned. */
import { Progress, Text } from '@mantine/core'
import { LettersLink } from '../kit/links.tsx'
import { duration, grouped } from '../time/format.ts'
import {
  DONE_WORDS,
  isActive,
  paceOf,
  type Run,
  type RunOutcomes,
  remainingOf,
  unconfirmedOf,
} from './run.ts'

const STATES = {
  running: 'Running',
  paused: 'Paused',
  done: 'Over',
  cancelled: 'Cancelled',
  interrupted: 'Interrupted: its tab was loaded anew, or its session ended',
} as const

export function RunBar({ run }: { readonly run: Run }) {
  const remaining = remainingOf(run)
  const numbers = [
    { count: run.done, word: DONE_WORDS[run.act], colour: 'teal.7' },
    { count: run.skipped, word: 'skipped', colour: 'gray.6' },
    { count: run.failed, word: 'failed', colour: 'red.7' },
  ]
  const words = [...numbers, { count: remaining, word: isActive(run) ? 'to go' : 'left' }]
    .map(({ count, word }) => `${grouped(count)} ${word}`)
    .join(' + ')
  return (
    <div>
      <Progress.Root size="lg" aria-label={run.sentence}>
        {numbers.map(({ count, word, colour }) => (
          <Progress.Section
            key={word}
            value={run.planned === 0 ? 0 : (count / run.planned) * 100}
            color={colour}
            aria-label={`${word}: ${count} of ${run.planned}`}
          />
        ))}
      </Progress.Root>
      <Text size="sm" className="run-numbers" mt={4}>
        {grouped(run.planned)} planned = {words}
      </Text>
      <Text size="sm" c="var(--quiet)">
        {STATES[run.state]}
        {run.state === 'running' && <Pace run={run} />}
      </Text>
      {run.trouble !== null && (
        <Text size="sm" role="alert">
          It paused by itself: {run.trouble}
        </Text>
      )}
      {run.outcomes !== null && <OutcomeLine run={run} outcomes={run.outcomes} />}
    </div>
  )
}

function Pace({ run }: { readonly run: Run }) {
  const pace = paceOf(run, Date.now())
  if (pace === null) return null
  return (
    <>
      , {pace.perSecond.toFixed(1)} per second, about {duration(pace.leftMs)} left
    </>
  )
}

function OutcomeLine({ run, outcomes }: { readonly run: Run; readonly outcomes: RunOutcomes }) {
  const unconfirmed = unconfirmedOf(outcomes)
  const of = outcomes.asked < run.done ? `Of the first ${grouped(outcomes.asked)} sent` : 'Of those sent'
  return (
    <Text size="sm">
      {of}: {grouped(outcomes.confirmed)} confirmed, {grouped(outcomes.returned)} returned,{' '}
      {unconfirmed === 0 ? (
        'none unconfirmed'
      ) : (
        <LettersLink filter={{ outcome: 'unconfirmed' }} label="All letters that are sent and unconfirmed">
          {grouped(unconfirmed)} unconfirmed
        </LettersLink>
      )}
      {unconfirmed > 0 && (outcomes.isFinal ? ' when last looked at' : ' so far')}
    </Text>
  )
}
