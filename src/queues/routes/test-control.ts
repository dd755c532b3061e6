/** The calls that tests steer a server with. They exist only on a server that was started for tests. */
import { parseGoDuration, usFromNs } from '../../core/duration.ts'
import { failure } from '../../core/errors.ts'
import { parseTimestamp } from '../../core/timestamp.ts'
import { QueuePauseRequestSchema, type TestClockRequest, TestClockRequestSchema } from '../wire/queues_pb.ts'
import { command, type QueueCall, type TimeControl } from './call.ts'

export const testControlCalls: readonly QueueCall[] = [
  command(
    { path: '/v1/queue.pause', summary: 'Hold or release everything that changes a queue', role: 'admin' },
    QueuePauseRequestSchema,
    ({ queueName, pause }, { queues }) => queues.pause(queueName, pause),
  ),
  command(
    { path: '/v1/test.clock', summary: 'Freeze or advance the clock', role: 'admin' },
    TestClockRequestSchema,
    async (message, { time }) => {
      if (time === undefined) throw new Error('the time of this server cannot be moved')
      await move(time, message)
    },
  ),
]

function move(time: TimeControl, { freeze, advance }: TestClockRequest): Promise<void> {
  if (freeze !== undefined && advance === undefined) {
    const parsed = parseTimestamp(freeze)
    if (!parsed.ok) throw failure('clock_malformed', { reason: parsed.reason })
    return time.freezeClock(parsed.at)
  }
  if (advance !== undefined && freeze === undefined) {
    const parsed = parseGoDuration(advance)
    if (!parsed.ok) throw failure('clock_malformed', { reason: parsed.reason })
    return time.advanceClock(usFromNs(parsed.ns))
  }
  throw failure('clock_malformed', { reason: freeze === undefined ? 'nothing given' : 'both given' })
}
