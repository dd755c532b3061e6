/** Says whether what is shown is live, and lets the reader pause it. */
import { Button, Tooltip } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { type LiveState, useLive } from '../live/live.tsx'
import { span } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import { useToasts } from '../toasts/toasts.tsx'

const WORDS: Readonly<Record<LiveState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  polling: 'Polling',
  stale: 'Stale',
  paused: 'Paused',
}

const MEANINGS: Readonly<Record<LiveState, string>> = {
  connecting: 'Waiting for the server.',
  live: 'Changes arrive as they happen. Press to pause.',
  polling: 'Events do not arrive; the page asks every five seconds. Press to pause.',
  stale: 'The server or its store does not answer. The page may be out of date; retrying.',
  paused: 'Live updates are paused. Press to resume.',
}

export function LiveSign() {
  const { state, heardAt, isPaused, setPaused } = useLive()
  const { now } = useTime()
  const { announce } = useToasts()
  const said = useRef<LiveState>('connecting')
  useEffect(() => {
    // Connecting and becoming live is what everybody expects.
    if (said.current !== 'connecting' || state !== 'live') announce(`${WORDS[state]}. ${MEANINGS[state]}`)
    said.current = state
  }, [state, announce])
  const age = state === 'stale' && heardAt !== null ? `, ${span(Math.max(0, now - heardAt))} old` : ''
  return (
    <Tooltip label={MEANINGS[state]}>
      <Button
        size="compact-sm"
        variant="default"
        className="live"
        data-live={state}
        aria-label={`${WORDS[state]}${age}. ${MEANINGS[state]}`}
        onClick={() => setPaused(!isPaused)}
        leftSection={<span className="live-dot" data-state={state} aria-hidden />}
      >
        {WORDS[state]}
        {age}
      </Button>
    </Tooltip>
  )
}
