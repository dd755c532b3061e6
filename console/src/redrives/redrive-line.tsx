/**
 * The redrive at hand, in one line at the foot of every screen, whoever started it: how far it is, and the means to halt it. The line
 * has room of its own and covers nothing. Paused ones are a badge on the rail, but for the one that was seen running here.
 */
import { ActionIcon, Anchor, Progress } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { usePlanning } from '../acts/plan-context.ts'
import { isActive, type Redrive } from '../api/redrive-types.ts'
import { SCREEN_ID } from '../frame/screens.ts'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import { useToasts } from '../toasts/toasts.tsx'
import { RedriveButtons } from './redrive-buttons.tsx'
import { lineOf, titleOf } from './redrive-words.ts'
import './redrives.css'
import { useActiveRedrives, useRedrivesOf } from './use-redrives.ts'
import { isNews, watchedOf } from './watched.ts'

const MOST_WATCHED = 8
/** Screen readers are told how far it is this often. */
const ANNOUNCE_EVERY_MS = 15_000

export function RedriveLine() {
  const { pathname } = useLocation()
  const [dismissed, setDismissed] = useState<ReadonlySet<string>>(new Set())
  const watched = useWatched()
  useAnnounced(watched)
  const news = watched.filter(({ id }) => !dismissed.has(id))
  const [first] = news
  // There they all are, with more about each.
  if (first === undefined || pathname === '/redrives' || pathname.startsWith('/redrives/')) return null
  const dismiss = () => {
    setDismissed((before) => new Set(before).add(first.id))
    // What was pressed is gone then.
    document.getElementById(SCREEN_ID)?.focus({ preventScroll: true })
  }
  return (
    <section aria-label="Redrives" className="redrive-line">
      <Anchor
        className="redrive-line-words"
        renderRoot={(props) => <Link to="/redrives/$id" params={{ id: first.id }} {...props} />}
      >
        {visible(first.sentence)}
      </Anchor>
      <Bar redrive={first} />
      <span className="redrive-line-numbers numbers">{lineOf(first)}</span>
      {news.length > 1 && (
        <Anchor size="sm" renderRoot={(props) => <Link to="/redrives" {...props} />}>
          {grouped(news.length - 1)} more
        </Anchor>
      )}
      {isActive(first) ? (
        <RedriveButtons redrive={first} isSlim />
      ) : (
        <ActionIcon
          size="sm"
          variant="subtle"
          color="gray"
          aria-label={`Dismiss: ${first.sentence}`}
          onClick={dismiss}
        >
          <span aria-hidden>✕</span>
        </ActionIcon>
      )}
    </section>
  )
}

function Bar({ redrive: { counts, ...redrive } }: { readonly redrive: Redrive }) {
  const done = counts.planned - counts.remaining
  return (
    <Progress
      className="redrive-line-bar"
      value={counts.planned === 0 ? 0 : (done / counts.planned) * 100}
      size="sm"
      color="teal.7"
      aria-label={titleOf({ ...redrive, counts })}
    />
  )
}

const NONE: readonly Redrive[] = []

/** Those under way, and those that were, or were started here, and ended not long ago. */
function useWatched(): readonly Redrive[] {
  const { started } = usePlanning()
  const { now } = useTime()
  const active = useActiveRedrives().data?.items ?? NONE
  const [ids, setIds] = useState<readonly string[]>([])
  const seen = [
    ...(started === null ? [] : [started]),
    ...active.filter(({ state }) => state !== 'paused').map(({ id }) => id),
  ]
  const watched = watchedOf(ids, seen, MOST_WATCHED)
  if (watched !== ids) setIds(watched)
  const others = watched.filter((id) => !active.some((redrive) => redrive.id === id))
  const known = [...active, ...useRedrivesOf(others)]
  return watched.flatMap((id) => known.find((redrive) => redrive.id === id && isNews(redrive, now)) ?? [])
}

/** Says now and then how far it is, and how it ended. */
function useAnnounced(redrives: readonly Redrive[]): void {
  const { announce } = useToasts()
  const states = useRef(new Map<string, string>())
  const announcedAt = useRef(0)
  useEffect(() => {
    for (const redrive of redrives) {
      const { id, state, sentence } = redrive
      const before = states.current.get(id)
      states.current.set(id, state)
      const isDue = isActive(redrive) && Date.now() - announcedAt.current > ANNOUNCE_EVERY_MS
      if (!isDue && (before === undefined || before === state)) continue
      announcedAt.current = Date.now()
      announce(sentence)
    }
  }, [redrives, announce])
}
