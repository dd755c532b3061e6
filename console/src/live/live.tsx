/**
 * Live updates. The server tells when a count changed (server-sent events), and how far redrives are; what depends on it is then read
 * anew, at most every two seconds. Where events do not come through, the same is done by polling. Paused, nothing on the page moves.
 */
import { focusManager, type QueryClient, useQueryClient } from '@tanstack/react-query'
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import { overviewQuery } from '../api/queries.ts'
import { activeRedrivesQuery } from '../api/redrive-queries.ts'
import type { ToldRedrive } from '../api/redrive-types.ts'
import type { Standing } from '../api/types.ts'
import { follow } from './follow.ts'
import { withTold } from './told-redrives.ts'

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
  ['overview'],
  ['activity'],
  ['counts'],
  ['signatures'],
  ['signature'],
  ['letters'],
  ['total'],
  ['letter'],
  ['queues'],
  ['redrives'],
  ['redrive'],
  ['redrive-letters'],
]
/** What progress of a redrive makes stale; how far those under way are is told with it. */
const REDRIVE_TOPICS = [['redrives', 'past'], ['redrive'], ['redrive-letters']]
const THROTTLE_MS = 2_000
const POLL_MS = 5_000
/** Polling that has not succeeded for this long leaves the page stale. */
const STALE_MS = 15_000
/** A tab in the background gives up its connection: browsers have six for all tabs of a server together. */
const HIDDEN_MS = 10_000

export function useLive(): Live {
  const live = useContext(LiveContext)
  if (live === null) throw new Error('there is no LiveProvider above')
  return live
}

/** Gives `useLive` to everything below it. */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient()
  const isLooking = useIsLooking()
  const [isPaused, setPaused] = useState(false)
  const refreshSoon = useRefresh(client, TOPICS, isPaused)
  const refreshRedrives = useRefresh(client, REDRIVE_TOPICS, isPaused)
  /** null: not known yet. */
  const [isConnected, setConnected] = useState<boolean | null>(null)
  const [isTroubled, setTroubled] = useState(false)
  const [heardAt, setHeardAt] = useState<number | null>(null)
  const [isStale, setStale] = useState(false)
  const [standing, setStanding] = useState<Standing | null>(null)
  /** The counts as they were told last. */
  const known = useRef<string | null>(null)
  /** The connection was lost since. */
  const hadGap = useRef(false)
  /** The server is there, its store is not: what it says does not make the page younger. */
  const troubled = useRef(false)

  // Coming back to the tab reads anew, too.
  useEffect(
    () => focusManager.setEventListener((focus) => (isPaused ? undefined : onVisibility(() => focus()))),
    [isPaused],
  )

  useEffect(() => {
    if (isPaused || !isLooking) return
    const stop = new AbortController()
    void follow(
      '/api/events',
      {
        heard: () => {
          setConnected(true)
          if (!troubled.current) setHeardAt(Date.now())
        },
        event: ({ name, text }) => {
          if (name === 'redrives') {
            // What the server promises (`api/redrive-types.ts`).
            takeIn(client, (JSON.parse(text) as { readonly items: readonly ToldRedrive[] }).items)
            return refreshRedrives()
          }
          troubled.current = name === 'trouble'
          setTroubled(troubled.current)
          if (name !== 'counts') return
          setHeardAt(Date.now())
          // The first one tells where things stand; the screens have just read that themselves.
          // After a gap also what stayed the same is read: it may not have been readable.
          if (known.current !== null && (known.current !== text || hadGap.current)) refreshSoon()
          hadGap.current = false
          known.current = text
          // What the server promises (`api/types.ts`).
          setStanding(JSON.parse(text) as Standing)
        },
        lost: () => {
          hadGap.current = true
          setConnected(false)
        },
      },
      stop.signal,
    )
    return () => stop.abort()
  }, [client, isPaused, isLooking, refreshSoon, refreshRedrives])

  useEffect(() => {
    if (isPaused || !isLooking || isConnected !== false) return
    const poll = async () => {
      const { letters, unconfirmed } = await client.fetchQuery({
        ...overviewQuery,
        staleTime: 0,
        retry: false,
      })
      setHeardAt(Date.now())
      setStanding((before) => ({
        ...(before ?? { captured: letters.Pending + letters.Resolved + letters.Expired }),
        ...letters,
        unconfirmed,
      }))
      refreshSoon()
    }
    // What fails is shown by the age of what was heard last.
    const timer = setInterval(() => void poll().catch(() => {}), POLL_MS)
    return () => clearInterval(timer)
  }, [client, isPaused, isLooking, isConnected, refreshSoon])

  useEffect(() => {
    if (isPaused || isConnected !== false) return setStale(false)
    const waitMs = Math.max(0, (heardAt ?? Date.now()) + STALE_MS - Date.now())
    setStale(waitMs === 0)
    const timer = setTimeout(() => setStale(true), waitMs)
    return () => clearTimeout(timer)
  }, [heardAt, isPaused, isConnected])

  const state = stateOf({ isPaused, isConnected, isStale: isStale || isTroubled })
  const live = useMemo(
    () => ({ state, heardAt, standing, isPaused, setPaused }) satisfies Live,
    [state, heardAt, standing, isPaused],
  )
  return <LiveContext value={live}>{children}</LiveContext>
}

function stateOf(seen: {
  readonly isPaused: boolean
  readonly isConnected: boolean | null
  readonly isStale: boolean
}): LiveState {
  if (seen.isPaused) return 'paused'
  if (seen.isConnected === null) return 'connecting'
  if (seen.isStale) return 'stale'
  return seen.isConnected ? 'live' : 'polling'
}

/** Takes in how far redrives are. What is being read of them meanwhile may be older: it is dropped, or asked for again. */
function takeIn(client: QueryClient, told: readonly ToldRedrive[]): void {
  const { queryKey } = activeRedrivesQuery
  const { page, isIncomplete } = withTold(client.getQueryData(queryKey), told)
  if (isIncomplete) return void client.invalidateQueries({ queryKey })
  void client.cancelQueries({ queryKey }).then(() => client.setQueryData(queryKey, page))
}

/** Makes what is shown be read anew, soon and never more often than the page can take; not at all while paused. */
function useRefresh(
  client: QueryClient,
  topics: readonly (readonly string[])[],
  isPaused: boolean,
): () => void {
  const refreshedAt = useRef(0)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what waits is dropped when it is paused
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      timer.current = undefined
    },
    [isPaused],
  )
  return useMemo(
    () => () => {
      if (timer.current !== undefined) return
      const waitMs = Math.max(0, refreshedAt.current + THROTTLE_MS - Date.now())
      timer.current = setTimeout(() => {
        timer.current = undefined
        refreshedAt.current = Date.now()
        for (const queryKey of topics) void client.invalidateQueries({ queryKey })
      }, waitMs)
    },
    [client, topics],
  )
}

const onVisibility = (changed: () => void) => {
  document.addEventListener('visibilitychange', changed)
  return () => document.removeEventListener('visibilitychange', changed)
}

/** Whether somebody may be looking: false once the tab has been in the background for a while. */
function useIsLooking(): boolean {
  const isVisible = useSyncExternalStore(onVisibility, () => document.visibilityState === 'visible')
  const [isLooking, setLooking] = useState(true)
  useEffect(() => {
    if (isVisible) return setLooking(true)
    const timer = setTimeout(() => setLooking(false), HIDDEN_MS)
    return () => clearTimeout(timer)
  }, [isVisible])
  return isLooking
}
