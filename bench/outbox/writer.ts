/**
 * What the writer costs: the same transactions, a row of the business and a message, once with a plain insert into the
 * same columns and once with the writer. In turns, so that a slow moment of the machine hits both; every statement is prepared.
 */
import {
  createKey,
  createOutbox,
  type NewMessage,
  pgAdapter,
  sqliteAdapter,
} from '../../src/sources/outbox/index.ts'
import { median } from '../figures.ts'
import { payload } from '../system.ts'
import { startDispatching } from './dispatching.ts'
import type { Sizes } from './flags.ts'
import { makeTables, reconcile } from './table.ts'
import type { WriterFigure } from './task.ts'
import { type Connection, openWriters, type Writers } from './writers.ts'

interface Scenario {
  readonly what: string
  readonly connections: number
  /** Messages in a transaction. */
  readonly batch: number
  /** None; one is said to wait all the time, so that writers have to wake it; or one works, in a process of its own. */
  readonly dispatcher: 'none' | 'waits' | 'works'
  readonly keyed: boolean
}

const single = { connections: 1, batch: 1, dispatcher: 'none', keyed: false } as const

const batches: readonly Scenario[] = [
  { ...single, what: 'add, 1 connection' },
  { ...single, what: 'add with createKey, 1 connection', keyed: true },
  { ...single, what: 'addMany(100)', batch: 100 },
  { ...single, what: 'addMany(1,000)', batch: 1_000 },
]

/** SQLite has one writer at a time, and nobody who is woken by one. A dispatcher that works finds the table empty. */
const onPostgres: readonly Scenario[] = [
  { ...single, what: 'add, 1 connection, a dispatcher works', dispatcher: 'works' },
  { ...single, what: 'add, 8 connections, a dispatcher works', dispatcher: 'works', connections: 8 },
  ...batches,
  { ...single, what: 'add, 8 connections', connections: 8 },
  { ...single, what: 'add, 1 connection, a dispatcher waits', dispatcher: 'waits' },
  { ...single, what: 'add, 8 connections, a dispatcher waits', dispatcher: 'waits', connections: 8 },
]

export async function measureWriter(store: string, sizes: Sizes): Promise<WriterFigure[]> {
  await makeTables(store)
  const isSqlite = store.startsWith('sqlite:')
  const figures: WriterFigure[] = []
  let added = 0
  for (const scenario of isSqlite ? batches : onPostgres) {
    const writers = await openWriters(store, scenario.connections)
    const dispatcher = scenario.dispatcher === 'works' ? await startDispatching(store) : null
    try {
      if (dispatcher === null) await writers.setWaiting(scenario.dispatcher === 'waits')
      const compared = await compare(writers, scenario, sizes)
      figures.push(compared.figure)
      added += compared.added
    } finally {
      await writers.close()
      await dispatcher?.finish()
    }
  }
  await reconcile(store, added)
  return figures
}

type Kind = 'plain' | 'writer'

async function compare(writers: Writers, scenario: Scenario, sizes: Sizes) {
  const { batch, what } = scenario
  const transactions = Math.max(Math.ceil(sizes.transactions / Math.sqrt(batch)), scenario.connections)
  const act = { plain: plainly, writer: throughOutbox(writers.isSqlite, batch) }
  const tookMs: Record<Kind, number[]> = { plain: [], writer: [] }
  let added = 0
  // The first pair is the warm-up.
  for (let round = 0; round <= sizes.rounds; round++) {
    const turns: readonly Kind[] = round % 2 === 0 ? ['plain', 'writer'] : ['writer', 'plain']
    for (const kind of turns) {
      const messages = Array.from({ length: transactions }, () => newMessages(scenario))
      const ms = await writers.timed(messages, act[kind])
      if (round > 0) tookMs[kind].push(ms)
      added += transactions * batch
    }
  }
  const perSecond = (kind: Kind) => (transactions * batch * 1_000) / median(tookMs[kind])
  const overheads = tookMs.plain.map((plainMs, at) => 100 * ((tookMs.writer[at] ?? Number.NaN) / plainMs - 1))
  const figure: WriterFigure = {
    what,
    plainPerSecond: perSecond('plain'),
    writerPerSecond: perSecond('writer'),
    overheadPercent: median(overheads),
  }
  return { figure, added }
}

let made = 0

/** Made before the clock starts: an application has its messages. Keys are part of what the writer costs. */
function newMessages({ batch, keyed }: Scenario): NewMessage[] {
  return Array.from({ length: batch }, () => {
    const n = ++made
    return {
      tenantId: `tenant-${n % 20}`,
      eventType: 'order.created',
      payload: payload(n),
      correlationId: `c-${n}`,
      ...(keyed ? { key: createKey(`tenant-${n % 20}`, 'order', String(n), 'created') } : {}),
    }
  })
}

const plainly = (connection: Connection, messages: readonly NewMessage[]) => connection.insert(messages)

function throughOutbox(isSqlite: boolean, batch: number) {
  // Each adapter with its own type of transaction: the outbox of one cannot be given that of the other.
  const ofPg = createOutbox({ adapter: pgAdapter() })
  const ofSqlite = createOutbox({ adapter: sqliteAdapter() })
  return async ({ pg, sqlite }: Connection, messages: readonly NewMessage[]): Promise<void> => {
    const [first] = messages
    if (isSqlite && sqlite !== null) {
      if (batch > 1) await ofSqlite.addMany(sqlite, messages)
      else if (first !== undefined) await ofSqlite.add(sqlite, first)
    } else if (pg !== null) {
      if (batch > 1) await ofPg.addMany(pg, messages)
      else if (first !== undefined) await ofPg.add(pg, first)
    }
  }
}
