/** The first sentence of the overview: how many letters wait, how many of them are one cause, since when, how unusual that is. */
import { Button, Group, Skeleton } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { usePlan } from '../acts/plan-context.ts'
import type { Overview, SignatureGroup } from '../api/types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { Count } from '../kit/links.tsx'
import { useLive } from '../live/live.tsx'
import { lettersOf, nameOf } from '../signatures/group.ts'
import { clockTime, grouped } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import { perHourOf, surgeOf } from './surge.ts'

export interface SentenceProps {
  readonly overview: Overview | undefined
  /** Causes, the largest first; undefined until they are read. */
  readonly groups: readonly SignatureGroup[] | undefined
}

export function Sentence({ overview, groups }: SentenceProps) {
  // Pushed by the server, and so a little younger; the rail shows the same number.
  const { standing } = useLive()
  if (overview === undefined || groups === undefined)
    return (
      <div className="sentence">
        <Skeleton height="1.75rem" width="min(40rem, 100%)" />
      </div>
    )
  const pending = standing?.Pending ?? overview.letters.Pending
  const [largest] = groups
  if (pending === 0 || largest === undefined || largest.open === 0)
    return (
      <p className="sentence">
        {pending === 0 ? 'No letters wait.' : <Waiting pending={pending} />}{' '}
        {overview.unconfirmed > 0 && `${grouped(overview.unconfirmed)} sent back, outcome not known yet.`}
      </p>
    )
  return (
    <div>
      <p className="sentence">
        <Waiting pending={pending} /> <LargestCause pending={pending} group={largest} />
      </p>
      <CauseButtons group={largest} />
    </div>
  )
}

const Waiting = ({ pending }: { readonly pending: number }) => (
  <>
    <Count of={pending} filter={{ status: 'Pending' }} label="pending" />{' '}
    {pending === 1 ? 'letter waits.' : 'letters wait.'}
  </>
)

function LargestCause({ pending, group }: { readonly pending: number; readonly group: SignatureGroup }) {
  const { now, zone } = useTime()
  const surge = surgeOf(group, now)
  const share =
    group.open >= pending
      ? pending === 1
        ? 'Its cause:'
        : 'All have one cause:'
      : `${grouped(group.open)} have one cause:`
  return (
    <>
      {share} <span className="sentence-cause">{withoutPlace(nameOf(group))}</span>
      {surge === null
        ? '.'
        : `, since ${clockTime(surge.since, now, zone)}, ${grouped(perHourOf(group))} an hour, ${surge.words}.`}
    </>
  )
}

/** Without the line of code that threw it, which a sentence has no room for. */
const withoutPlace = (name: string): string => name.replace(/ at \S+ \([^()]*\)$/, '')

function CauseButtons({ group }: { readonly group: SignatureGroup }) {
  const plan = usePlan()
  return (
    <Group gap="xs" mt="xs">
      <Button
        size="xs"
        variant="default"
        renderRoot={(props) => (
          <Link to="/signatures/$signature" params={{ signature: group.signature }} {...props} />
        )}
      >
        Open the cause
      </Button>
      <ActButton
        size="xs"
        needs="operator"
        onClick={() =>
          plan({
            act: 'retry',
            filter: { signature: group.signature, status: 'Pending' },
            what: lettersOf(group),
          })
        }
      >
        Plan a retry
      </ActButton>
    </Group>
  )
}
