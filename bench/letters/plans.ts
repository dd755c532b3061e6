/** The plans of calls that take longer the more letters there are, as PostgreSQL carries them out in a session of the office. */
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { Office } from '../../src/index.ts'
import { type Figure, MOST_GROWTH } from '../figures.ts'
import { readsOf } from './reads.ts'

/** PostgreSQL keeps a plan from the sixth call on, and may be asked on several connections. */
const CALLS = 20

/** A plan is told when its statement is put away, which may be after the answer. */
const SETTLED_MS = 100

const settings = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  client_min_messages: 'log',
}

export interface Plans {
  /** The call. */
  readonly name: string
  /** Of each of its statements, as they were in the last call. */
  readonly texts: readonly string[]
}

/** Of the calls that have grown since `fewest`. */
export async function plansOf(
  store: string,
  figures: readonly Figure[],
  fewest: readonly Figure[],
): Promise<Plans[]> {
  const before = new Map(fewest.map(({ name, value }) => [name, value]))
  const grown = figures.filter(
    ({ name, unit, value }) => unit === 'ms' && value > MOST_GROWTH * (before.get(name) ?? value),
  )
  if (grown.length === 0 || !store.startsWith('postgres')) return []
  const url = new URL(store)
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  url.searchParams.set('options', flags.join(' '))
  const heard = hearNotices()
  const office = await Office.open({ store: url.href })
  try {
    const plans: Plans[] = []
    for (const { name, call } of await readsOf(office, 1)) {
      if (!grown.some((figure) => figure.name.startsWith(`${name}, p`))) continue
      for (let at = 1; at < CALLS; at++) await call(at)
      await pause(SETTLED_MS)
      heard.length = 0
      await call(0)
      await pause(SETTLED_MS)
      plans.push({ name, texts: [...heard] })
    }
    return plans
  } finally {
    await office.close()
  }
}

/** What PostgreSQL tells the connections of this process beside its answers, from now on. */
function hearNotices(): string[] {
  const heard: string[] = []
  // The driver of the office: peers bring one of their own, which is what this folder would get.
  const { prototype }: typeof pg.Client = createRequire(import.meta.resolve('../../src/index.ts'))(
    'pg',
  ).Client
  const { emit } = prototype
  prototype.emit = function (this: pg.Client, event: string | symbol, ...args: unknown[]) {
    if (event === 'notice') heard.push(messageOf(args[0]))
    return Reflect.apply(emit, this, [event, ...args])
  }
  return heard
}

const messageOf = (notice: unknown): string =>
  typeof notice === 'object' && notice !== null && 'message' in notice ? String(notice.message) : ''
