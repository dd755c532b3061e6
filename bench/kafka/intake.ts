/** Intake: an office takes in all records of a topic. From the moment it begins to read until all of them are letters. */
import { setTimeout as pause } from 'node:timers/promises'
import { Office } from '../../src/office.ts'
import { peakRssMb } from './memory.ts'
import { kafkaOptions } from './options.ts'
import type { Rate, Task } from './task.ts'

export async function measureIntake(task: Extract<Task, { act: 'intake' }>): Promise<Rate> {
  const { bootstrap, topic, group, events, store } = task
  // The tables are made before: that is no part of intake.
  await (await Office.open({ store })).close()
  const startMs = performance.now()
  const office = await Office.open({ store, kafka: kafkaOptions(bootstrap, topic, `retry-${topic}`, group) })
  for (;;) {
    const { totals } = await office.letters.numbers.counts({ engine: 'kafka' })
    if (totals.Pending > events) throw new Error(`${totals.Pending} letters of ${events} events`)
    if (totals.Pending === events) break
    await pause(20)
  }
  const seconds = (performance.now() - startMs) / 1000
  await office.close()
  return { perSecond: events / seconds, peakRssMb: peakRssMb() }
}
