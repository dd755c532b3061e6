/**
 * One page of letters at a time. It stands still while it is held (something is selected, pointed at or being decided) and behind the
 * first page; what arrives meanwhile is only counted.
 */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { type LetterQueryProblem, parseLetterQuery } from '../../../src/core/letter-query.ts'
import { letterPageQuery, PAGE_SIZE, totalQuery } from '../api/queries.ts'
import type { LetterFilter, LetterItem, Total } from '../api/types.ts'
import { useLive } from '../live/live.tsx'
import { keepPlace, keptPlace } from './list-memory.ts'

export interface LetterList {
  readonly filter: LetterFilter
  readonly problems: readonly LetterQueryProblem[]
  readonly rows: readonly LetterItem[]
  readonly read: { readonly data: unknown; readonly error: unknown; refetch(): unknown }
  /** What is shown belongs to the query before: the answer is awaited. */
  readonly isOld: boolean
  /** null until it is known for this query. */
  readonly total: Total | null
  /** Letters captured since the page was read. */
  readonly news: number
  /** Of the first row, counted from 1. */
  readonly from: number
  readonly refresh: () => void
  /** null where there is none. */
  readonly next: (() => void) | null
  readonly previous: (() => void) | null
}

interface Asked {
  readonly text: string
  readonly nowMs: number
  readonly tokens: readonly (string | null)[]
}

const begin = (text: string): Asked => ({ text, nowMs: Date.now(), tokens: [null] })

/** Tokens are bound to what was asked, and so to the time from which ages count. */
function resume(text: string): Asked {
  const place = keptPlace(text)
  if (place === null || place.tokens.length < 2) return begin(text)
  return { text, nowMs: place.nowMs, tokens: place.tokens }
}

const NONE: readonly LetterItem[] = []

export function useLetterList(text: string, isHeld: boolean): LetterList {
  const [asked, setAsked] = useState(() => resume(text))
  const now = asked.text === text ? asked : resume(text)
  if (now !== asked) setAsked(now)
  useEffect(() => keepPlace(now), [now])

  const { filter, problems } = useMemo(() => parseLetterQuery(now.text, now.nowMs), [now.text, now.nowMs])
  const token = now.tokens.at(-1) ?? null
  const isFrozen = isHeld || now.tokens.length > 1
  const isAskable = problems.length === 0
  const page = useQuery({
    ...letterPageQuery(filter, token),
    enabled: ({ state }) => isAskable && (!isFrozen || state.data === undefined),
  })
  const total = useQuery({ ...totalQuery(filter), enabled: isAskable })
  const news = useNews(page.isFetching)
  const next = page.data?.continuationToken ?? null
  const isOld = page.isPlaceholderData

  return {
    filter,
    problems,
    rows: isAskable ? (page.data?.items ?? NONE) : NONE,
    read: page,
    isOld,
    total: total.isPlaceholderData ? null : (total.data ?? null),
    news: isFrozen ? news : 0,
    from: (now.tokens.length - 1) * PAGE_SIZE + 1,
    refresh: () => {
      setAsked(begin(text))
      void page.refetch()
      void total.refetch()
    },
    next: next === null || isOld ? null : () => setAsked({ ...now, tokens: [...now.tokens, next] }),
    previous: now.tokens.length === 1 ? null : () => setAsked({ ...now, tokens: now.tokens.slice(0, -1) }),
  }
}

/** How many letters were captured since the last read ended. */
function useNews(isFetching: boolean): number {
  const captured = useLive().standing?.captured
  const known = useRef(captured)
  const wasFetching = useRef(isFetching)
  if (known.current === undefined || (wasFetching.current && !isFetching)) known.current = captured
  wasFetching.current = isFetching
  return Math.max(0, (captured ?? 0) - (known.current ?? captured ?? 0))
}
