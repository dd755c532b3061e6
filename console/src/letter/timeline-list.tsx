/** The timeline beside a letter. */
import { Button, Text } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { LetterDetail } from '../api/types.ts'
import { Time } from '../time/time.tsx'
import { type Moment, timelineOf } from './timeline.ts'

const FIRST_SHOWN = 25

export function TimelineList({ letter }: { readonly letter: LetterDetail }) {
  const moments = useMemo(() => timelineOf(letter), [letter])
  const [isAll, setAll] = useState(false)
  const shown = isAll ? moments : moments.slice(0, FIRST_SHOWN)
  return (
    <>
      <ol className="timeline" reversed>
        {shown.map((moment) => (
          <TimelineMoment key={moment.id} moment={moment} />
        ))}
      </ol>
      {shown.length < moments.length && (
        <Button size="compact-sm" variant="default" onClick={() => setAll(true)}>
          Show all {moments.length}
        </Button>
      )}
    </>
  )
}

const SIGNS: Readonly<Record<Moment['kind'], string>> = { failure: '✗', act: '•', good: '✓', bad: '↩' }

function TimelineMoment({ moment: { kind, title, at, by, says } }: { readonly moment: Moment }) {
  return (
    <li data-kind={kind}>
      <span className="timeline-sign" aria-hidden>
        {SIGNS[kind]}
      </span>
      <Text size="sm" fw={600} component="span">
        {title}
      </Text>
      <Text size="sm" c="var(--quiet)" component="div">
        <Time at={at} />
        {by === null ? '' : `, by ${by}`}
      </Text>
      {says !== null && (
        <Text size="sm" component="div" lineClamp={6} className="timeline-says">
          {says}
        </Text>
      )}
    </li>
  )
}
