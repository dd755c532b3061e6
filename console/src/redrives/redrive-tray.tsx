/** Redrives at hand, in a corner of every screen, whoever started them: how far they are, and the means to halt them. */
import { ActionIcon, Anchor, Button, Group, Paper, Stack, Text } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { usePlanning } from '../acts/plan-context.ts'
import { isActive, type Redrive } from '../api/redrive-types.ts'
import { SCREEN_ID } from '../frame/screens.ts'
import { keep, kept } from '../kit/kept.ts'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import { useToasts } from '../toasts/toasts.tsx'
import { RedriveBar } from './redrive-bar.tsx'
import { RedriveButtons } from './redrive-buttons.tsx'
import './redrives.css'
import { useActiveRedrives, useRedrivesOf } from './use-redrives.ts'
import { isNews, watchedOf } from './watched.ts'

/** More than these are on the screen of redrives. */
const MOST_SHOWN = 3
const MOST_WATCHED = 8
/** Screen readers are told how far it is this often. */
const ANNOUNCE_EVERY_MS = 15_000

export function RedriveTray() {
  const { pathname } = useLocation()
  const [dismissed, setDismissed] = useState<ReadonlySet<string>>(new Set())
  const [isSmall, setSmall] = useSmall()
  const watched = useWatched()
  useAnnounced(watched)
  const place = useRef<HTMLElement>(null)
  const news = watched.filter(({ id }) => !dismissed.has(id))
  // There they all are, with more about each.
  if (news.length === 0 || pathname === '/redrives' || pathname.startsWith('/redrives/')) return null
  const dismiss = (id: string) => {
    setDismissed((before) => new Set(before).add(id))
    // What was pressed is gone then.
    const next = news.length > 1 ? place.current : document.getElementById(SCREEN_ID)
    next?.focus({ preventScroll: true })
  }
  return (
    <Paper
      component="section"
      ref={place}
      aria-label="Redrives"
      className={isSmall ? 'redrive-tray small' : 'redrive-tray'}
      withBorder={!isSmall}
      shadow="md"
      tabIndex={-1}
    >
      {!isSmall && (
        <Stack gap="sm" mb="sm">
          {news.slice(0, MOST_SHOWN).map((redrive) => (
            <Shown key={redrive.id} redrive={redrive} dismiss={() => dismiss(redrive.id)} />
          ))}
        </Stack>
      )}
      <Group justify="space-between">
        {!isSmall && (
          <Anchor size="sm" renderRoot={(props) => <Link to="/redrives" {...props} />}>
            {news.length > MOST_SHOWN
              ? `All redrives, ${grouped(news.length - MOST_SHOWN)} more`
              : 'All redrives'}
          </Anchor>
        )}
        {/* One button in both forms: it keeps the focus. */}
        <Button
          size={isSmall ? 'sm' : 'compact-sm'}
          variant={isSmall ? 'default' : 'transparent'}
          {...(isSmall ? {} : { px: 0 })}
          aria-expanded={!isSmall}
          onClick={() => setSmall(!isSmall)}
        >
          {isSmall ? inShort(news) : 'Make small'}
        </Button>
      </Group>
    </Paper>
  )
}

function Shown({ redrive, dismiss }: { readonly redrive: Redrive; readonly dismiss: () => void }) {
  return (
    <Stack gap={6}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Text size="sm" fw={600} lineClamp={3} className="wrapped">
          <Anchor
            inherit
            renderRoot={(props) => <Link to="/redrives/$id" params={{ id: redrive.id }} {...props} />}
          >
            {visible(redrive.sentence)}
          </Anchor>
        </Text>
        {!isActive(redrive) && (
          <ActionIcon
            size="sm"
            variant="subtle"
            color="gray"
            aria-label={`Dismiss: ${redrive.sentence}`}
            onClick={dismiss}
          >
            <span aria-hidden>✕</span>
          </ActionIcon>
        )}
      </Group>
      <RedriveBar redrive={redrive} />
      <RedriveButtons redrive={redrive} />
    </Stack>
  )
}

const KEPT_AS = 'bartleby.tray'

/** Whoever has made it small does not want it large again on the next page. */
function useSmall(): readonly [boolean, (isSmall: boolean) => void] {
  const [isSmall, setSmall] = useState(() => kept('tab', KEPT_AS) === 'small')
  const change = (small: boolean) => {
    keep('tab', KEPT_AS, small ? 'small' : null)
    setSmall(small)
  }
  return [isSmall, change]
}

const NONE: readonly Redrive[] = []

/** Those under way, and those that were, or were started here, and ended not long ago. */
function useWatched(): readonly Redrive[] {
  const { started } = usePlanning()
  const { now } = useTime()
  const active = useActiveRedrives().data?.items ?? NONE
  const [ids, setIds] = useState<readonly string[]>([])
  const seen = [...(started === null ? [] : [started]), ...active.map(({ id }) => id)]
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

function inShort(redrives: readonly Redrive[]): string {
  const active = redrives.filter(isActive)
  if (active.length === 0)
    return redrives.length === 1 ? '1 redrive is over' : `${redrives.length} redrives are over`
  const left = active.reduce((sum, { counts }) => sum + counts.remaining, 0)
  const paused = active.some(({ state }) => state === 'paused') ? ', paused' : ''
  return `${active.length === 1 ? '1 redrive' : `${active.length} redrives`}: ${grouped(left)} to go${paused}`
}
