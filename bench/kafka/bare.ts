/** The bare loop: the same client reads the same records, commits after every thousand, and does nothing else. */
import { Consumer, MessagesStreamFallbackModes, MessagesStreamModes } from '@platformatic/kafka'
import { peakRssMb } from './memory.ts'
import type { Rate, Task } from './task.ts'

const COMMIT_EVERY = 1_000

export async function measureBare({
  bootstrap,
  topic,
  group,
  events,
}: Extract<Task, { act: 'bare' }>): Promise<Rate> {
  const consumer = new Consumer({ clientId: 'bare', groupId: group, bootstrapBrokers: [bootstrap] })
  const startMs = performance.now()
  const stream = await consumer.consume({
    topics: [topic],
    mode: MessagesStreamModes.COMMITTED,
    fallbackMode: MessagesStreamFallbackModes.EARLIEST,
    autocommit: false,
  })
  let read = 0
  for await (const message of stream) {
    read += 1
    if (read % COMMIT_EVERY === 0 || read === events) await message.commit()
    if (read === events) break
  }
  const seconds = (performance.now() - startMs) / 1000
  await consumer.close(true)
  return { perSecond: events / seconds, peakRssMb: peakRssMb() }
}
