/**
 * In a demo: what to try first. A redrive in four steps that notice by themselves when they are done, shown where it begins and where
 * it happens. What was done is kept for as long as the tab lives.
 */
import { Anchor, Button, CloseButton, Group, Paper, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect, useState } from 'react'
import { signatureQuery } from '../api/queries.ts'
import type { LetterDetail, Outcomes, Session } from '../api/types.ts'
import { keep, kept } from '../kit/kept.ts'
import { useSession } from '../kit/role.tsx'
import { nextOf, readTour, type Step, stepsOf, type Tour } from './demo-progress.ts'

const KEPT_AS = 'bartleby.demo'

export function DemoBanner() {
  const { demo } = useSession()
  return demo === null ? null : <DemoTour demo={demo} />
}

function DemoTour({ demo }: { readonly demo: NonNullable<Session['demo']> }) {
  const { pathname } = useLocation()
  const { healingSignature, stormSignature } = demo
  const { data: group } = useQuery(signatureQuery(healingSignature))
  const [tour, change] = useTour()
  useNoticing(healingSignature, group?.outcomes, tour, change)

  const isShownHere = pathname === '/' || pathname.startsWith('/signatures/')
  if (!isShownHere) return null
  if (tour.isDismissed) {
    return (
      <Group justify="flex-end">
        <Button size="compact-xs" variant="subtle" onClick={() => change({ isDismissed: false })}>
          Show the tour of the demo
        </Button>
      </Group>
    )
  }
  const steps = stepsOf(tour, group?.outcomes)
  const next = nextOf(steps)
  return (
    <Paper withBorder p="sm" mb="md" component="section" aria-label="Tour of the demo" className="tour">
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <div>
          <Text fw={600} size="sm">
            {next === null
              ? 'That was a redrive.'
              : 'This is a demo: everything in it is made up. Try a redrive.'}
          </Text>
          <ol className="tour-steps">
            {steps.map((step) => (
              <StepLine key={step.id} step={step} isNext={step.id === next?.id}>
                {wordsOf(step.id, healingSignature, group?.outcomes, tour)}
              </StepLine>
            ))}
          </ol>
          <Text size="sm" c="var(--quiet)" className="prose">
            {next === null
              ? 'Nothing was lost, and every step stands in the history. Then look at '
              : 'Later: '}
            <SignatureAnchor signature={stormSignature}>the storm</SignatureAnchor>, hundreds of letters from
            one outage. What is retried while it lasts returns; afterwards it arrives.
          </Text>
        </div>
        <CloseButton size="sm" aria-label="Close the tour" onClick={() => change({ isDismissed: true })} />
      </Group>
    </Paper>
  )
}

function StepLine({
  step,
  isNext,
  children,
}: {
  readonly step: Step
  readonly isNext: boolean
  readonly children: ReactNode
}) {
  return (
    <li data-done={step.isDone || undefined} aria-current={isNext ? 'step' : undefined}>
      {children}
      {step.isDone && <strong> ✓ done</strong>}
    </li>
  )
}

function wordsOf(id: Step['id'], healing: string, now: Outcomes | undefined, { before }: Tour): ReactNode {
  switch (id) {
    case 'open':
      return (
        <>
          Open <SignatureAnchor signature={healing}>the signature whose cause is gone</SignatureAnchor>.
        </>
      )
    case 'look':
      return 'Look at one of its letters: what failed, when, and the message itself.'
    case 'retry':
      return (
        <>
          Back on the signature, press <strong>Retry all…</strong>, read the plan, start it.
        </>
      )
    case 'watch': {
      const sent = (now?.retried ?? 0) - (before?.retried ?? 0)
      const confirmed = (now?.confirmed ?? 0) - (before?.confirmed ?? 0)
      return sent > 0 && before !== null
        ? `Watch the outcomes: ${confirmed} of ${sent} confirmed.`
        : 'Watch the outcomes become confirmed.'
    }
  }
}

function SignatureAnchor({
  signature,
  children,
}: {
  readonly signature: string
  readonly children: ReactNode
}) {
  return (
    <Anchor
      inherit
      underline="always"
      renderRoot={(props) => <Link to="/signatures/$signature" params={{ signature }} {...props} />}
    >
      {children}
    </Anchor>
  )
}

function useTour(): readonly [Tour, (changes: Partial<Tour>) => void] {
  const [tour, setTour] = useState(() => readTour(kept('tab', KEPT_AS)))
  useEffect(() => keep('tab', KEPT_AS, JSON.stringify(tour)), [tour])
  return [tour, (changes) => setTour((before) => ({ ...before, ...changes }))]
}

/** Ticks off what the visitor has done, wherever they are. */
function useNoticing(
  healing: string,
  outcomes: Outcomes | undefined,
  tour: Tour,
  change: (changes: Partial<Tour>) => void,
): void {
  const { pathname } = useLocation()
  const client = useQueryClient()
  const hasOpened = tour.hasOpened || pathname === `/signatures/${healing}`
  const before = tour.before ?? outcomes ?? null
  // biome-ignore lint/correctness/useExhaustiveDependencies: `change` is made anew each time and does the same
  useEffect(() => {
    if (hasOpened !== tour.hasOpened || before !== tour.before) {
      change({
        hasOpened,
        before: before === null ? null : { retried: before.retried, confirmed: before.confirmed },
      })
    }
  }, [hasOpened, before, tour])
  // biome-ignore lint/correctness/useExhaustiveDependencies: as above
  useEffect(() => {
    if (tour.hasLooked) return
    const cache = client.getQueryCache()
    return cache.subscribe(({ query }) => {
      if (query.queryKey[0] !== 'letter' || query.getObserversCount() === 0) return
      // What the key promises (`api/queries.ts`).
      const letter = query.state.data as LetterDetail | undefined
      if (letter?.signature === healing) change({ hasLooked: true })
    })
  }, [client, healing, tour.hasLooked])
}
