/** What stands below the tables: how the figures were taken. */
import { count } from '../tables.ts'
import type { Flags } from './flags.ts'
import { SENDERS } from './sending.ts'

export const notes = ({ sizes }: Flags): readonly string[] => [
  `Server, receiver and sender are processes of their own and share the cores; the server has its defaults, payloads are 140 bytes. Rates of deliveries and beside what hangs are medians of ${sizes.runs} runs ± half of the range, in turns.`,
  `Deliveries: ${count(sizes.deliveries)} a run, broadcast by ${SENDERS} senders, from the first broadcast to the last arrival. Ways: at ${sizes.steadyMessages} messages or ${sizes.steadyDeliveries} deliveries a second, whichever is less, for ${sizes.steadySeconds} s, from right before the broadcast to the arrival. The bare loop posts the same to the same receiver, as many at the same time as the server, and keeps nothing.`,
  `Backlog: half of it is for two push consumers whose receiver takes 3 s to answer, half for five pull consumers that do not come; broadcasts at ${sizes.steadyMessages} a second for ${sizes.backlogSeconds} s, whether those before are answered or not.`,
  `Hanging: ${count(sizes.hangMessages)} messages to the healthy consumer; each one that hangs has ${count(sizes.stuck)} waiting, takes every callback and never answers; attempts time out after 5 s.`,
  `Dead jobs are loaded by SQL, ${sizes.samples} calls of everything that is read, one after the other. While they are purged or requeued, four senders broadcast without a pause to another consumer.`,
  'After every run the books were balanced: sent = delivered + dead + waiting + removed, for every consumer as counted and as it lies there, and nothing received twice.',
]
