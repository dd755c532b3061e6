/** Redrives at hand, in a corner of every screen, whoever started them: how far they are, and the means to halt them. */
import { ActionIcon, Anchor, Button, Group, Paper, Stack, Text } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { usePlanning } from '../acts/plan-context.ts'
import { isActive, type Redrive } from '../api/redrive-types.ts'
import { keep, kept } from '../kit/kept.ts'
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
  const shown = watched.filter(({ id }) => !dismissed.has(id)).slice(0, MOST_SHOWN)
  // There they all are, with more about each.
  if (shown.length === 0 || pathname === '/redrives' || pathname.startsWith('/redrives/')) return null
  if (isSmall) {
    return (
      <section aria-label="Redrives" className="redrive-tray small">
        <Button variant="default" onClick={() => setSmall(false)} aria-expanded={false}>
          {inShort(shown)}
        </Button>
      </section>
    )
  }
  return (
    <Paper component="section" aria-label="Redrives" className="redrive-tray" withBorder shadow="md">
      <Stack gap="sm">
        {shown.map((redrive) => (
          <Stack key={redrive.id} gap={6}>
            <Group justify="space-between" wrap="nowrap" align="flex-start">
              <Text size="sm" fw={600} lineClamp={3}>
                <Anchor
                  inherit
                  renderRoot={(props) => <Link to="/redrives/$id" params={{ id: redrive.id }} {...props} />}
                >
                  {redrive.sentence}
                </Anchor>
              </Text>
              {!isActive(redrive) && (
                <ActionIcon
                  size="sm"
                  variant="subtle"
                  color="gray"
                  aria-label={`Dismiss: ${redrive.sentence}`}
                  onClick={() => setDismissed((before) => new Set(before).add(redrive.id))}
                >
                  <span aria-hidden>✕</span>
                </ActionIcon>
              )}
            </Group>
            <RedriveBar redrive={redrive} />
            <RedriveButtons redrive={redrive} />
          </Stack>
        ))}
        <Group justify="space-between">
          <Anchor size="sm" renderRoot={(props) => <Link to="/redrives" {...props} />}>
            All redrives
          </Anchor>
          <Anchor size="sm" component="button" type="button" onClick={() => setSmall(true)}>
            Make small
          </Anchor>
        </Group>
      </Stack>
    </Paper>
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
