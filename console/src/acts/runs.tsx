/** Acts on many letters, as they go on: they outlive the screen that began them, but not the tab. */

import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { call } from '../api/call.ts'
import { randomId } from '../api/random-id.ts'
import type { LetterItem, Page } from '../api/types.ts'
import { useSession } from '../kit/role.tsx'
import { grouped } from '../time/format.ts'
import { useToasts } from '../toasts/toasts.tsx'
import { changeLetter, retryLetter } from './calls.ts'
import { watchOutcomes } from './outcomes.ts'
import { Plan } from './plan.tsx'
import { PlanContext, type PlanRequest } from './plan-context.ts'
import { DONE_WORDS, isActive, newRun, type Run, type RunPlan } from './run.ts'
import { keepRuns, keptRuns } from './run-store.ts'
import { Runner, type RunWorld } from './runner.ts'
import { RunsContext } from './runs-context.ts'

const PAGE = 100
/** Numbers on the page move no more often than this. */
const SHOW_EVERY_MS = 250
/** Screen readers are told how far it is this often. */
const ANNOUNCE_EVERY_MS = 15_000

const world: RunWorld = {
  page: (filter, token) =>
    call<Page<LetterItem>>('GET', '/api/dlq', {
      query: { ...filter, limit: PAGE, continuationToken: token },
    }),
  perform: ({ id, act, reason }, letter) => {
    const onceKey = `run-${id}`
    if (act === 'retry') return retryLetter(letter, { notes: reason }, onceKey)
    return changeLetter(letter, act === 'discard' ? 'Resolved' : 'Pending', reason, onceKey)
  },
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  nowMs: () => Date.now(),
}

/** Gives `usePlan` and `useRuns` to everything below it. */
export function RunsProvider({ children }: { readonly children: ReactNode }) {
  const { name } = useSession()
  const [request, setRequest] = useState<PlanRequest | null>(null)
  const { runs, steer, start } = useRunners(name ?? 'nobody')
  const isPlanning = request !== null
  const value = useMemo(
    () => ({
      runs,
      isPlanning,
      start,
      pause: (id: string) => steer(id)?.pause(),
      goOn: (id: string) => steer(id)?.goOn(),
      cancel: (id: string) => steer(id)?.cancel(),
    }),
    [runs, isPlanning, start, steer],
  )
  const close = useCallback(() => setRequest(null), [])
  return (
    <PlanContext value={setRequest}>
      <RunsContext value={value}>
        {children}
        <Plan request={request} close={close} />
      </RunsContext>
    </PlanContext>
  )
}

function useRunners(by: string) {
  const client = useQueryClient()
  const { announce, show } = useToasts()
  const [runs, setRuns] = useState<readonly Run[]>(keptRuns)
  const latest = useRef(runs)
  const runners = useRef(new Map<string, Runner>())
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const watches = useRef<AbortController | null>(null)
  const isOver = useRef(false)

  /** Takes the news about a run in; they are shown a little later, many at once. */
  const change = useCallback((run: Run) => {
    if (isOver.current) return
    latest.current = latest.current.some(({ id }) => id === run.id)
      ? latest.current.map((each) => (each.id === run.id ? run : each))
      : [run, ...latest.current]
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      setRuns(latest.current)
      keepRuns(latest.current)
    }, SHOW_EVERY_MS)
  }, [])

  const start = useCallback(
    (plan: RunPlan) => {
      const run = newRun(plan, randomId(), by, new Date().toISOString())
      let announcedAt = Date.now()
      const runner: Runner = new Runner(run, world, (now) => {
        change(now)
        if (Date.now() - announcedAt < ANNOUNCE_EVERY_MS) return
        announcedAt = Date.now()
        announce(`${now.sentence}: ${grouped(now.done)} ${DONE_WORDS[now.act]}`)
      })
      runners.current.set(run.id, runner)
      change(run)
      announce(`Begun: ${run.sentence}`)
      watches.current ??= new AbortController()
      const { signal } = watches.current
      void runner
        .start()
        .then(async () => {
          runners.current.delete(run.id)
          if (isOver.current) return
          const ended = runner.run
          const numbers = `${grouped(ended.done)} ${DONE_WORDS[ended.act]}, ${grouped(ended.skipped)} skipped, ${grouped(ended.failed)} failed`
          const title = ended.state === 'done' ? 'The run is over' : 'The run was cancelled'
          show({ title, message: `${ended.sentence}: ${numbers}.` })
          void client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
          if (ended.act !== 'retry' || runner.sent.length === 0) return
          await watchOutcomes(runner.sent, signal, (outcomes) => change({ ...ended, outcomes }))
        })
        .catch((error: unknown) => show({ title: 'The run broke', message: String(error), tone: 'failed' }))
    },
    [by, change, announce, show, client],
  )

  useEffect(() => {
    isOver.current = false
    return () => {
      // The session is over, and with it the screens: what is under way is kept as interrupted, as when the tab is loaded anew.
      clearTimeout(timer.current)
      timer.current = undefined
      keepRuns(latest.current)
      isOver.current = true
      for (const runner of runners.current.values()) runner.cancel()
      watches.current?.abort()
      watches.current = null
    }
  }, [])

  const isBusy = runs.some(isActive)
  useEffect(() => {
    if (!isBusy) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [isBusy])

  const steer = useCallback((id: string) => runners.current.get(id), [])
  return { runs, start, steer }
}
