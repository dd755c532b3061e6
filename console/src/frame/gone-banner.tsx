/** Says on every screen that the server is gone, and how old the page is. */
import { Alert } from '@mantine/core'
import { useLive } from '../live/live.tsx'
import { span } from '../time/format.ts'
import { useTime } from '../time/time.tsx'

export function GoneBanner() {
  const { state, heardAt } = useLive()
  const { now } = useTime()
  if (state !== 'stale') return null
  const age = heardAt === null ? '' : ` This page is ${span(Math.max(1_000, now - heardAt))} old.`
  return (
    <Alert color="red" mb="md" role="status" title="The server or its store does not answer">
      Nothing can be done from here until it does; the page keeps trying.{age}
    </Alert>
  )
}
