/** The plan: what will happen to how many letters, before anything does. */
import { Alert, Button, Group, Modal, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useLocation } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { redriveQuery } from '../api/redrive-queries.ts'
import type { RedriveAction } from '../api/redrive-types.ts'
import { SCREEN_ID } from '../frame/screens.ts'
import { ActButton } from '../kit/act-button.tsx'
import { grouped } from '../time/format.ts'
import { useToasts } from '../toasts/toasts.tsx'
import { VERBS } from './act.ts'
import './acts.css'
import { redriveCommand } from './commands.ts'
import { CopiedCommand } from './copied-command.tsx'
import type { PlanRequest } from './plan-context.ts'
import { type Draft, type DraftProblem, FRESH, problemOf } from './plan-draft.ts'
import { PlanFields } from './plan-fields.tsx'
import { PlanFindings } from './plan-findings.tsx'
import { countRefusal, TypedCount } from './typed-count.tsx'
import { type PlanCalls, usePlanCalls } from './use-plan-calls.ts'

const TITLES: Readonly<Record<RedriveAction, string>> = {
  retry: 'Plan a retry',
  move: 'Plan a move',
  discard: 'Plan a discard',
  restore: 'Plan a restore',
}

export interface PlanProps {
  /** null: closed. */
  readonly request: PlanRequest | null
  readonly close: () => void
  /** Told the id of the redrive that was started. */
  readonly started: (id: string) => void
}

export function Plan({ request, close, started }: PlanProps) {
  const { href } = useLocation()
  const openedAt = useRef(href)
  if (request === null) openedAt.current = href
  // A link in the plan leads away from it.
  const hasLeft = request !== null && openedAt.current !== href
  useEffect(() => {
    if (hasLeft) close()
  }, [hasLeft, close])
  useFocusAfter(request !== null)
  return (
    <Modal
      opened={request !== null}
      onClose={close}
      size="60rem"
      title={request === null ? '' : TITLES[request.act]}
      classNames={{ content: 'plan-window' }}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {request !== null && <Decision request={request} close={close} started={started} />}
    </Modal>
  )
}

interface DecisionProps extends PlanProps {
  readonly request: PlanRequest
}

function Decision({ request, close, started }: DecisionProps) {
  const { act } = request
  const client = useQueryClient()
  const { announce } = useToasts()
  const [draft, setDraft] = useState<Draft>(request.draft ?? FRESH)
  const [typed, setTyped] = useState('')
  const calls = usePlanCalls(request, draft, (redrive) => {
    client.setQueryData(redriveQuery(redrive.id).queryKey, redrive)
    void client.invalidateQueries({ queryKey: ['redrives'] })
    announce(`Started: ${redrive.sentence}`)
    started(redrive.id)
    close()
  })
  const { plan, isOld } = calls
  const missing = problemOf(act, draft)
  const found = plan?.sentence ?? null
  useEffect(() => {
    if (found !== null) announce(found)
  }, [found, announce])
  usePlanAtOnce(() => {
    if (missing === null) calls.make(draft)
  })
  const change = (changes: Partial<Draft>) => {
    calls.forget()
    setDraft((before) => ({ ...before, ...changes }))
  }
  const mustPlan = plan === null || isOld
  return (
    <Stack gap="md">
      <PlanFindings request={request} calls={calls} isAskable={missing === null} />
      <PlanFields
        act={act}
        draft={draft}
        problem={calls.problem ?? (isBegun(missing, draft) ? missing : null)}
        change={change}
      />
      {plan !== null && <TypedCount plan={plan} typed={typed} type={setTyped} />}
      <div>
        <Text size="sm" fw={600} mb={4}>
          The same on the command line
        </Text>
        <CopiedCommand text={redriveCommand(request, draft, Date.now())} label="the command" />
      </div>
      <div className="plan-foot">
        {calls.problem !== null && (
          <Alert
            color="red"
            role="alert"
            title={calls.isRefused ? 'The server refused' : 'The server did not answer'}
            mb="sm"
            py="xs"
          >
            {calls.problem.says}
          </Alert>
        )}
        <Group gap="sm" justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <ActButton
            needs="operator"
            refusal={missing?.says ?? null}
            loading={calls.isPlanning}
            onClick={() => calls.make(draft)}
            variant={mustPlan ? 'filled' : 'default'}
          >
            {plan === null ? 'Plan it' : 'Plan again'}
          </ActButton>
          <ActButton
            needs="operator"
            refusal={missing?.says ?? startRefusal(calls, typed)}
            loading={calls.isStarting}
            onClick={() => calls.start(draft)}
            variant={mustPlan ? 'default' : 'filled'}
            {...(act === 'discard' ? { color: 'red' } : {})}
          >
            {VERBS[act]} {plan === null ? '…' : grouped(plan.numbers.eligible)}
          </ActButton>
        </Group>
      </div>
    </Stack>
  )
}

/** The dialog gives the focus back, but what opened it may be gone with what was selected: then the screen has it. */
function useFocusAfter(isOpen: boolean): void {
  useEffect(() => {
    if (!isOpen) return
    return () => {
      setTimeout(() => {
        if (document.activeElement === document.body)
          document.getElementById(SCREEN_ID)?.focus({ preventScroll: true })
      }, GIVEN_BACK_MS)
    }
  }, [isOpen])
}

/** The dialog takes a few milliseconds for it. */
const GIVEN_BACK_MS = 100

/** What was not typed yet is not wrong yet. */
const isBegun = (problem: DraftProblem | null, { patch }: Draft): boolean =>
  problem?.field === 'patch' && patch.trim() !== ''

function startRefusal({ plan, isOld, isPlanning }: PlanCalls, typed: string): string | null {
  if (isPlanning) return 'The plan is being made.'
  if (plan === null) return 'Plan first, and check the numbers.'
  if (isOld) return 'Plan again first: the terms have changed.'
  return countRefusal(plan, typed)
}

/** Once, when the plan is opened. */
function usePlanAtOnce(make: () => void): void {
  const isMade = useRef(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed later is planned when it is asked for
  useEffect(() => {
    if (isMade.current) return
    isMade.current = true
    make()
  }, [])
}
