/** Four numbers in one row: each says what it counts, and leads to the letters behind it. */
import { Skeleton, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Overview } from '../api/types.ts'
import { Count, LetterLink, QueryLink } from '../kit/links.tsx'
import { useLive } from '../live/live.tsx'
import { grouped, span } from '../time/format.ts'
import { Time, useTime } from '../time/time.tsx'
import { againstUsual } from './usual.ts'

/** Before `overview` is there, the tiles keep their places. */
export function Tiles({ overview }: { readonly overview: Overview | undefined }) {
  // Pushed by the server, and so a little younger.
  const { standing } = useLive()
  return (
    <section className="tiles" aria-label="Numbers">
      <OldestTile overview={overview} />
      <ArrivalsTile arrivals={overview?.arrivals} />
      <Tile title="Returned" note="after a retry, 24 h">
        {overview && (
          <QueryLink
            query="status:pending attempts:>=2 age:<1d"
            label={`${grouped(overview.returnedLastDay)} returned after a retry: pending letters that failed again in the last day`}
          >
            {grouped(overview.returnedLastDay)}
          </QueryLink>
        )}
      </Tile>
      <Tile title="Unconfirmed" note="sent back">
        {overview && (
          <Count
            of={standing?.unconfirmed ?? overview.unconfirmed}
            filter={{ outcome: 'unconfirmed' }}
            label="sent and unconfirmed"
          />
        )}
      </Tile>
    </section>
  )
}

function OldestTile({ overview }: { readonly overview: Overview | undefined }) {
  const { now } = useTime()
  const oldest = overview?.oldestPending ?? null
  if (overview !== undefined && oldest === null) {
    return (
      <Tile title="Oldest pending" note="none waits">
        –
      </Tile>
    )
  }
  return (
    <Tile
      title="Oldest pending"
      note={
        oldest && (
          <>
            failed <Time at={oldest.lastFailureAtUtc} />
          </>
        )
      }
    >
      {oldest && (
        <LetterLink letter={oldest}>
          {span(Math.max(0, now - new Date(oldest.lastFailureAtUtc).getTime()))}
        </LetterLink>
      )}
    </Tile>
  )
}

function ArrivalsTile({ arrivals }: { readonly arrivals: Overview['arrivals'] | undefined }) {
  if (arrivals === undefined) return <Tile title="Last hour" note={null} />
  const { lastHour, usualPerHour } = arrivals
  const { words, isHigh } = againstUsual(lastHour, usualPerHour)
  return (
    <Tile
      title="Last hour"
      isHigh={isHigh}
      note={
        <>
          {isHigh && <span aria-hidden>▲ </span>}
          {words}
          {usualPerHour !== null && <span className="quiet-note"> ({usual(usualPerHour)}/h)</span>}
        </>
      }
    >
      <QueryLink query="age:<1h" label={`${grouped(lastHour)} arrivals in the last hour, ${words}`}>
        {grouped(lastHour)}
      </QueryLink>
    </Tile>
  )
}

const usual = (perHour: number): string =>
  perHour < 10 ? String(Number(perHour.toFixed(1))) : grouped(Math.round(perHour))

function Tile({
  title,
  note,
  isHigh = false,
  children,
}: {
  readonly title: string
  readonly note: ReactNode
  readonly isHigh?: boolean
  readonly children?: ReactNode
}) {
  return (
    <div className="tile" data-high={isHigh || undefined}>
      <Text size="xs" c="var(--quiet)" component="h2" fw={500}>
        {title}
      </Text>
      <div className="tile-number numbers">
        {children ?? <Skeleton height="1.6rem" width="4rem" mt={4} />}
      </div>
      <div className="tile-note">{note}</div>
    </div>
  )
}
