/** The runs at hand, in a corner of every screen: how far they are, and the means to stop them. It can be made small. */
import { ActionIcon, Anchor, Button, Group, Paper, Stack, Text } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import { useState } from 'react'
import { grouped } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import './acts.css'
import { isActive, type Run, remainingOf } from './run.ts'
import { RunBar } from './run-bar.tsx'
import { RunButtons } from './run-buttons.tsx'
import { useRuns } from './runs-context.ts'

/** More than these are on the screen of redrives. */
const MOST_SHOWN = 3
/** How long an ended run stays unless it is dismissed; one that was interrupted should not go unnoticed. */
const NEWS_MS = 2 * 60_000
const INTERRUPTED_MS = 10 * 60_000

export function RunTray() {
  const { runs } = useRuns()
  const { now } = useTime()
  const { pathname } = useLocation()
  const [dismissed, setDismissed] = useState<ReadonlySet<string>>(new Set())
  const [isSmall, setSmall] = useState(false)
  const shown = runs.filter((run) => !dismissed.has(run.id) && isNews(run, now)).slice(0, MOST_SHOWN)
  // There they all are, with more about each.
  if (shown.length === 0 || pathname === '/redrives') return null
  if (isSmall) {
    return (
      <section aria-label="Runs" className="run-tray small">
        <Button variant="default" onClick={() => setSmall(false)} aria-expanded={false}>
          {inShort(shown)}
        </Button>
      </section>
    )
  }
  return (
    <Paper component="section" aria-label="Runs" className="run-tray" withBorder shadow="md">
      <Stack gap="sm">
        {shown.map((run) => (
          <Stack key={run.id} gap={6}>
            <Group justify="space-between" wrap="nowrap" align="flex-start">
              <Text size="sm" fw={600} lineClamp={2}>
                {run.sentence}
              </Text>
              {!isActive(run) && (
                <ActionIcon
                  size="sm"
                  variant="subtle"
                  color="gray"
                  aria-label={`Dismiss: ${run.sentence}`}
                  onClick={() => setDismissed((before) => new Set(before).add(run.id))}
                >
                  <span aria-hidden>✕</span>
                </ActionIcon>
              )}
            </Group>
            <RunBar run={run} />
            <RunButtons run={run} />
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

function isNews(run: Run, now: number): boolean {
  if (isActive(run) || run.endedAt === null || run.outcomes?.isFinal === false) return true
  const endedMs = now - new Date(run.endedAt).getTime()
  return endedMs < (run.state === 'interrupted' ? INTERRUPTED_MS : NEWS_MS)
}

function inShort(runs: readonly Run[]): string {
  const active = runs.filter(isActive)
  if (active.length === 0) return runs.length === 1 ? '1 run is over' : `${runs.length} runs are over`
  const left = active.reduce((sum, run) => sum + remainingOf(run), 0)
  const paused = active.some(({ state }) => state === 'paused') ? ', paused' : ''
  return `${active.length === 1 ? '1 run' : `${active.length} runs`}: ${grouped(left)} to go${paused}`
}
