/** Fills a store with letters of one service, through intake itself but without a broker. */
import { once } from 'node:events'
import { SystemClock } from '../../src/core/system-clock.ts'
import { newRegisters } from '../../src/letters/registers.ts'
import { Office } from '../../src/office.ts'
import { readRedriveRef } from '../../src/redrive/rows/rows.ts'
import { createRecordStore } from '../../src/sources/kafka/intake/store.ts'
import { kafkaSettings } from '../../src/sources/kafka/settings/options.ts'
import { openDatabase } from '../../src/store/open.ts'
import { deadEvent } from './events.ts'
import { peakRssMb } from './memory.ts'
import { kafkaOptions } from './options.ts'
import type { Rate, Task } from './task.ts'

const BATCH = 1_000
export const TOPIC = 'bench-dlq'

export async function loadLetters({ store, letters }: Extract<Task, { act: 'load' }>): Promise<Rate> {
  await (await Office.open({ store })).close()
  const settings = kafkaSettings(kafkaOptions('127.0.0.1:1', TOPIC, 'bench-retry', 'bench'))
  if (settings === null) throw new Error('kafka is not enabled')
  const db = openDatabase(store, { poolSize: 2 })
  const clock = new SystemClock()
  const registers = newRegisters()
  const records = createRecordStore({ db, clock, registers, settings, redriveOf: readRedriveRef })
  const startMs = performance.now()
  for (let from = 0; from < letters; from += BATCH) {
    const count = Math.min(BATCH, letters - from)
    const keep = records.prepare(
      Array.from({ length: count }, (_, i) => {
        const { key, value, headers = [] } = deadEvent(from + i)
        return {
          topic: TOPIC,
          partition: 0,
          offset: BigInt(from + i),
          timestampMs: clock.now() / 1000n,
          key: Buffer.from(key ?? ''),
          value: Buffer.from(value ?? ''),
          headers: headers.map(([name, text]) => ({
            name: Buffer.from(name),
            value: Buffer.from(text ?? ''),
          })),
        }
      }),
    )
    await keep()
    if (from % 50_000 === 0 && !process.stderr.write(`  ${from.toLocaleString('en')} letters\n`))
      await once(process.stderr, 'drain')
  }
  const seconds = (performance.now() - startMs) / 1000
  await db.close()
  return { perSecond: letters / seconds, peakRssMb: peakRssMb() }
}
