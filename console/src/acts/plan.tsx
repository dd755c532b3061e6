/** The plan: what will happen to how many letters, before anything does. */
import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useLocation } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { redriveQuery } from '../api/redrive-queries.ts'
import type { RedriveAction } from '../api/redrive-types.ts'
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
  return (
    <Modal
      opened={request !== null}
      onClose={close}
      size="60rem"
      title={request === null ? '' : TITLES[request.act]}
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
  usePlanAtOnce(() => {
    if (missing === null) calls.make(draft)
  })
  const change = (changes: Partial<Draft>) => {
    calls.forget()
    setDraft((before) => ({ ...before, ...changes }))
  }
  const mustType = act === 'discard' && plan !== null && plan.numbers.eligible > 1
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
      {mustType && (
        <TextInput
          label={`Type ${grouped(plan.numbers.eligible)} to discard them`}
          description="So that nobody discards more than they think."
          inputMode="numeric"
          autoComplete="off"
          required
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      <div>
        <Text size="sm" fw={600} mb={4}>
          The same on the command line
        </Text>
        <CopiedCommand text={redriveCommand(request, draft, Date.now())} label="the command" />
      </div>
      {calls.problem !== null && (
        <Alert color="red" role="alert" title="The server refuses this">
          {calls.problem.says}
        </Alert>
      )}
      <Group gap="sm" justify="flex-end">
        <Button variant="default" onClick={close}>
          Leave it
        </Button>
        {(mustPlan || calls.problem !== null) && (
          <ActButton
            needs="operator"
            refusal={missing?.says ?? null}
            loading={calls.isPlanning}
            onClick={() => calls.make(draft)}
          >
            {plan === null ? 'Plan it' : 'Plan again'}
          </ActButton>
        )}
        <ActButton
          needs="operator"
          refusal={missing?.says ?? startRefusal(calls, mustType ? typed : null)}
          loading={calls.isStarting}
          onClick={() => calls.start(draft)}
          variant={mustPlan ? 'default' : 'filled'}
          {...(act === 'discard' ? { color: 'red' } : {})}
        >
          {VERBS[act]} {plan === null ? '…' : grouped(plan.numbers.eligible)}
        </ActButton>
      </Group>
    </Stack>
  )
}

/** What was not typed yet is not wrong yet. */
const isBegun = (problem: DraftProblem | null, { patch }: Draft): boolean =>
  problem?.field === 'patch' && patch.trim() !== ''

/** `typed` null: nothing has to be typed. */
function startRefusal({ plan, isOld, isPlanning }: PlanCalls, typed: string | null): string | null {
  if (isPlanning) return 'The plan is being made.'
  if (plan === null) return 'Plan it first, and look at what it found.'
  if (isOld) return 'Plan again first: what would be sent was changed.'
  const { eligible } = plan.numbers
  if (eligible === 0) return 'There is no letter in the plan.'
  return typed !== null && typed.replace(/\D/g, '') !== String(eligible) ? `Type ${eligible} first.` : null
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
