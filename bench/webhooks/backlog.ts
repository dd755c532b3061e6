/** Broadcasting while much waits: how long the answers take, and the way to a consumer that has nothing waiting itself. */
import { Meter } from '../meter.ts'
import { balance } from './books.ts'
import type { Sizes } from './flags.ts'
import { onStage, type Stage, untilDelivered } from './stage.ts'
import type { BacklogFigure } from './task.ts'

/** Half of what waits is for push consumers whose receiver is slow, half for pull consumers that do not come. */
const SLOW = 2
const PULL = 5
const WARM_UP = 300

export async function measureBacklog(store: string, sizes: Sizes): Promise<BacklogFigure> {
  const { backlog, backlogSeconds: seconds, steadyMessages: rate } = sizes
  let jobs = 0
  let delivered = 0
  const figures = await onStage(store, async (stage) => {
    const { serverId, broker, receiver, sending } = stage
    await putChannels(stage)
    const meter = await Meter.connect(null, [serverId])
    await meter.start()
    /** Sends, and keeps the books. */
    const send = async (channel: keyof typeof consumersOf, act: () => Promise<void>) => {
      const before = sending.sent
      await act()
      jobs += (sending.sent - before) * consumersOf[channel]
      if (channel === 'well') delivered += sending.sent - before
    }
    const answers: BacklogFigure['answers'][number][] = []
    const time = async (what: string, channel: keyof typeof consumersOf, beside: boolean) => {
      const first = sending.sent
      await send(channel, async () => {
        answers.push({ what, beside, times: await sending.steadily(channel, rate, seconds) })
      })
      await receiver.untilWell(delivered)
      return receiver.ways([first, sending.sent])
    }
    for (const channel of ['well', 'slow', 'pull'] as const)
      await send(channel, () => sending.all(channel, WARM_UP))
    await receiver.untilWell(delivered)
    const before = await time('to a healthy consumer', 'well', false)

    await send('slow', () => sending.all('slow', backlog / 2 / SLOW))
    await send('pull', () => sending.all('pull', backlog / 2 / PULL))
    const lying = async () => (await broker.waiting('slow')) + (await broker.waiting('pull'))
    let waiting = await lying()
    // The slow ones have taken some meanwhile.
    while (waiting < backlog) {
      await send('pull', () => sending.all('pull', Math.ceil((backlog - waiting) / PULL) + WARM_UP))
      waiting = await lying()
    }
    const beside = await time('to a healthy consumer', 'well', true)
    await time(`to ${SLOW} slow push consumers, behind what waits`, 'slow', true)
    await time(`to ${PULL} pull consumers, behind what waits`, 'pull', true)
    await untilDelivered(broker, 'well')
    const { serverPeakRssMb } = await meter.finish(jobs)
    return {
      answers,
      ways: { before, beside },
      waiting: [waiting, await lying()] as const,
      serverPeakRssMb: serverPeakRssMb ?? Number.NaN,
    }
  })
  return { ...figures, books: await balance(store, { sent: jobs }) }
}

const consumersOf = { well: 1, slow: SLOW, pull: PULL } as const

async function putChannels({ broker, receiver }: Stage): Promise<void> {
  for (const channel of ['well', 'slow', 'pull'] as const) {
    await broker.putChannel(channel)
    for (let at = 0; at < consumersOf[channel]; at++) {
      const type = channel === 'pull' ? 'pull' : 'push'
      await broker.putConsumer(channel, `${channel}-${at}`, type, `${receiver.url}/${channel}/${at}`)
    }
  }
}
