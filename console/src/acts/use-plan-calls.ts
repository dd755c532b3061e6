/**
 * The plan of the server behind what is typed. A plan is shown before it is started, always: where the pace or the reason was changed
 * since, or its time is over, it is made anew, and started only if it found the same; else the new one is shown first.
 */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { CallFailure, reasonOf } from '../api/call.ts'
import type { RedriveDetail } from '../api/redrive-types.ts'
import { planRedrive, startRedrive } from '../redrives/calls.ts'
import { nameOf } from './letter-name.ts'
import type { PlanRequest } from './plan-context.ts'
import { bodyOf, type Draft, type DraftProblem, fieldOf, shapeOf } from './plan-draft.ts'

interface ShownPlan {
  readonly plan: RedriveDetail
  /** What it was made of. */
  readonly body: string
  readonly shape: string
}

export interface PlanCalls {
  /** The plan as it is shown; null: none yet. */
  readonly plan: RedriveDetail | null
  /** What would be sent was changed since it was made. */
  readonly isOld: boolean
  /** It was made anew to be started, and found something else than the one before. */
  readonly hasMoved: boolean
  readonly isPlanning: boolean
  /** How far a plan is that takes long; null: it does not, yet. */
  readonly progress: string | null
  readonly isStarting: boolean
  /** What the server refused, or why it could not be asked. */
  readonly problem: DraftProblem | null
  /** The server answered, and said no. */
  readonly isRefused: boolean
  make(draft: Draft): void
  start(draft: Draft): void
  /** Forgets what was refused: it is being changed. */
  forget(): void
}

/** `started` is told of the redrive that came of the plan. */
export function usePlanCalls(
  request: PlanRequest,
  draft: Draft,
  started: (redrive: RedriveDetail) => void,
): PlanCalls {
  const [shown, setShown] = useState<ShownPlan | null>(null)
  const [hasMoved, setMoved] = useState(false)
  const [progress, setProgress] = useState<string | null>(null)
  const make = useMutation({
    mutationFn: (asked: Draft) => madeOf(request, asked, setProgress),
    onSettled: () => setProgress(null),
    onSuccess: (made) => {
      setShown(made)
      setMoved(false)
    },
  })
  const start = useMutation({
    mutationFn: async (asked: Draft) => {
      if (shown === null) return null
      if (isAsMade(shown, request, asked)) return startRedrive(shown.plan.id)
      const made = await madeOf(request, asked, setProgress)
      setShown(made)
      const hasSame = foundOf(made.plan) === foundOf(shown.plan)
      setMoved(!hasSame)
      return hasSame ? startRedrive(made.plan.id) : null
    },
    onSuccess: (redrive) => {
      if (redrive !== null) started(redrive)
    },
  })
  const error = start.error ?? make.error
  return {
    plan: shown?.plan ?? null,
    isOld: shown !== null && shown.shape !== shapeOf(request.act, draft),
    hasMoved,
    isPlanning: make.isPending,
    progress,
    isStarting: start.isPending,
    problem: error === null ? null : problemIn(error),
    isRefused: error instanceof CallFailure && error.status > 0,
    make: (asked) => {
      start.reset()
      make.mutate(asked)
    },
    start: (asked) => {
      make.reset()
      start.mutate(asked)
    },
    forget: () => {
      make.reset()
      start.reset()
    },
  }
}

async function madeOf(
  request: PlanRequest,
  draft: Draft,
  tell: (sentence: string) => void,
): Promise<ShownPlan> {
  const body = bodyOf(request, draft)
  return { plan: await planRedrive(body, tell), body, shape: shapeOf(request.act, draft) }
}

const isAsMade = ({ plan, body }: ShownPlan, request: PlanRequest, draft: Draft): boolean =>
  body === bodyOf(request, draft) && new Date(plan.validUntilUtc).getTime() > Date.now()

/** What was looked at: the numbers, and the first letters. */
const foundOf = ({ numbers, destinations, sample }: RedriveDetail): string =>
  JSON.stringify([
    numbers,
    destinations.map(({ source, name, planned }) => [source, name, planned]),
    sample.map(nameOf),
  ])

const problemIn = (error: unknown): DraftProblem => ({
  field: error instanceof CallFailure ? fieldOf(error.parameter) : null,
  says: reasonOf(error),
})
