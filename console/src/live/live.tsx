/**
 * Live updates. The server tells when a count changed (server-sent events); what depends on it is then read anew, at most every
 * two seconds. Where events do not come through, the same is done by polling. Paused, nothing on the page moves.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from 'react'
import type { Standing } from '../api/types.ts'

export type LiveState = 'connecting' | 'live' | 'polling' | 'stale' | 'paused'

export interface Live {
  readonly state: LiveState
  /** When the server was last heard; null before the first time. */
  readonly heardAt: number | null
  /** null until the server has told. */
  readonly standing: Standing | null
  readonly isPaused: boolean
  setPaused(paused: boolean): void
}

const LiveContext = createContext<Live | null>(null)

/** What a change of the counts makes stale. */
const TOPICS = [
  'overview',
  'activity',
  'counts',
  'signatures',
  'signature',
  'letters',
  'total',
  'letter',
  'queues',
]
const THROTTLE_MS = 2_000
const POLL_MS = 5_000
/** The server sends a sign of life every 15 s. */
const STALE_MS = 40_000

export function useLive(): Live {
  const live = useContext(LiveContext)
  if (live === null) throw new Error('there is no LiveProvider above')
  return live
}

function refresh(client: QueryClient): void {
  for (const topic of TOPICS) void client.invalidateQueries({ queryKey: [topic] })
}

/** Gives `useLive` to everything below it. */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient()
  const [isPaused, setPaused] = useState(false)
  const [isConnected, setConnected] = useState(false)
  const [hasFailed, setFailed] = useState(false)
  const [heardAt, setHeardAt] = useState<number | null>(null)
  const [isStale, setStale] = useState(false)
  const [standing, setStanding] = useState<Standing | null>(null)
  const throttle = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const refreshedAt = useRef(0)

  useEffect(() => {
    if (isPaused) return
    const source = new EventSource('/api/events')
    const heard = () => {
      setHeardAt(Date.now())
      setConnected(true)
      setFailed(false)
    }
    let isFirst = true
    source.addEventListener('hello', heard)
    source.addEventListener('counts', (event) => {
      heard()
      // What the server promises (`api/types.ts`).
      setStanding(JSON.parse(event.data) as Standing)
      // The first one tells where things stand; the screens have just read that themselves.
      if (isFirst) isFirst = false
      else soon()
    })
    source.addEventListener('error', () => {
      setConnected(false)
      setFailed(true)
    })
    const soon = () => {
      if (throttle.current !== undefined) return
      const waitMs = Math.max(0, refreshedAt.current + THROTTLE_MS - Date.now())
      throttle.current = setTimeout(() => {
        throttle.current = undefined
        refreshedAt.current = Date.now()
        refresh(client)
      }, waitMs)
    }
    return () => {
      source.close()
      clearTimeout(throttle.current)
      throttle.current = undefined
      setConnected(false)
    }
  }, [client, isPaused])

  useEffect(() => {
    if (isPaused || isConnected || !hasFailed) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') refresh(client)
    }, POLL_MS)
    return () => clearInterval(timer)
  }, [client, isPaused, isConnected, hasFailed])

  useEffect(() => {
    if (heardAt === null || isPaused) return
    setStale(false)
    const timer = setTimeout(() => setStale(true), STALE_MS)
    return () => clearTimeout(timer)
  }, [heardAt, isPaused])

  const state = isPaused
    ? 'paused'
    : isConnected
      ? 'live'
      : hasFailed
        ? isStale
          ? 'stale'
          : 'polling'
        : 'connecting'
  const live = useMemo(
    () => ({ state, heardAt, standing, isPaused, setPaused }) satisfies Live,
    [state, heardAt, standing, isPaused],
  )
  return <LiveContext value={live}>{children}</LiveContext>
}
