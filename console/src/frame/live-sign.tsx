/** Says whether what is shown is live, and lets the reader pause it. */
import { Button, Tooltip } from '@mantine/core'
import { type LiveState, useLive } from '../live/live.tsx'
import { span } from '../time/format.ts'
import { useTime } from '../time/time.tsx'

const WORDS: Readonly<Record<LiveState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  polling: 'Polling',
  stale: 'Stale',
  paused: 'Paused',
}

export function LiveSign() {
  const { state, heardAt, isPaused, setPaused } = useLive()
  const { now } = useTime()
  const age = heardAt === null ? '' : ` ${span(Math.max(0, now - heardAt))}`
  const meaning = {
    connecting: 'Waiting for the server.',
    live: 'Changes arrive as they happen. Press to pause.',
    polling: 'Events do not come through; the page asks every five seconds. Press to pause.',
    stale: 'The server has not been heard for a while. What is shown may be old.',
    paused: 'Nothing on the page changes by itself. Press to go on.',
  }[state]
  return (
    <Tooltip label={meaning}>
      <Button
        size="compact-sm"
        variant="default"
        data-live={state}
        aria-pressed={isPaused}
        aria-label={`${WORDS[state]}. ${meaning}`}
        onClick={() => setPaused(!isPaused)}
        leftSection={<span className="live-dot" data-state={state} aria-hidden />}
      >
        {WORDS[state]}
        {state === 'stale' ? age : ''}
      </Button>
    </Tooltip>
  )
}
