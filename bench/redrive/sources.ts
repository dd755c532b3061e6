/**
 * Letters that go back to where they came from: to a queue, to the jobs of a webhook consumer, to the rows of an outbox in the same
 * database. Each in a store of its own; nobody delivers what was sent back meanwhile.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Office } from '../../src/index.ts'
import { openLoader } from '../letters/loader.ts'
import { words } from '../letters/sql.ts'
import { loadMessages, makeTables, TABLE } from '../outbox/table.ts'
import { loadDead } from '../webhooks/dead-load.ts'
import { verify } from './books.ts'
import { load } from './load.ts'
import { carryOut, planAll } from './redriving.ts'
import type { SourceFigure, TaskOf } from './task.ts'

const OUTBOX = { name: 'orders', transport: 'none' } as const
const LONG_MS = 120_000

export async function measureSource({ store, from, letters }: TaskOf<'source'>): Promise<SourceFigure> {
  await fill[from](store, letters)
  const office = await Office.open({ store, ...(from === 'outbox' && { outbox: [OUTBOX] }) })
  await untilPending(office, letters)
  await untilFiled(store)
  const { id } = await planAll(office)
  const startMs = performance.now()
  const { sent } = (await carryOut(office, id)).counts
  const seconds = (performance.now() - startMs) / 1000
  await office.close()
  if (sent !== letters) throw new Error(`${sent} of ${letters} letters were sent`)
  await verify(store)
  return { perSecond: sent / seconds }
}

const fill = {
  queues: (store: string, letters: number) => load({ act: 'load', store, letters, keys: null }),
  /** Of a consumer that pulls: jobs wait until somebody takes them. */
  webhooks: (store: string, letters: number) =>
    loadDead(store, { channels: 1, consumers: 1, type: 'pull', failures: 0 }, letters),
  async outbox(store: string, letters: number) {
    await makeTables(store)
    await loadMessages(store, letters, 'pending')
    const loader = await openLoader(store)
    const [now, due] =
      loader.dialect === 'postgres'
        ? ['now()', 'true']
        : [`CAST(unixepoch('subsec') * 1000000 AS INTEGER)`, '1']
    await loader.run(
      `UPDATE ${TABLE} SET dead_at = ${now}, retry_count = 5, error = 'its receiver answered 500', letter_due = ${due}`,
    )
    await loader.calm()
    await loader.close()
  },
} as const

/** The office is told of dead rows after its start. */
async function untilPending(office: Office, letters: number): Promise<void> {
  const limitMs = performance.now() + LONG_MS
  for (;;) {
    const { Pending } = await office.letters.numbers.summary()
    if (Pending === letters) return
    if (performance.now() > limitMs) throw new Error(`${Pending} of ${letters} letters are pending`)
    await pause(50)
  }
}

/** Letters of outboxes are new: making them searchable takes longer than sending them back, and those of the others were found ready. */
async function untilFiled(store: string): Promise<void> {
  const loader = await openLoader(store)
  const { schema } = words[loader.dialect]
  const limitMs = performance.now() + LONG_MS
  for (;;) {
    const [row] = await loader.rows(`SELECT count(*) AS ranges FROM ${schema}letters_to_file`)
    if (Number(row?.ranges) === 0) break
    if (performance.now() > limitMs) throw new Error(`${row?.ranges} ranges of letters wait to be filed`)
    await pause(50)
  }
  await loader.close()
}
