/** What a measurement plays on: a server, a receiver and a sender, each in a process of its own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type BartlebyServer, startBartleby } from '../servers/bartleby.ts'
import { Broker } from './broker.ts'
import { Receiver } from './receive.ts'
import { Sending } from './sending.ts'

export interface Stage {
  readonly serverId: number
  readonly broker: Broker
  readonly receiver: Receiver
  readonly sending: Sending
}

/** Settings of the configuration file; what is left out is as it comes. */
export type Settings = Readonly<Record<string, unknown>>

/** Runs `act` beside a server of the store. When this returns nothing runs any more, and the store can be counted. */
export async function onStage<T>(
  store: string,
  act: (stage: Stage) => Promise<T>,
  settings: Settings = {},
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-bench-settings-'))
  try {
    const file = join(folder, 'bartleby.json')
    await writeFile(file, JSON.stringify(settings))
    return await beside(await Receiver.start(), await startBartleby(store, { config: file }), act)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function beside<T>(
  receiver: Receiver,
  server: BartlebyServer,
  act: (stage: Stage) => Promise<T>,
): Promise<T> {
  const broker = new Broker(server.url)
  try {
    if (server.pid === undefined) throw new Error('the server has no process')
    await broker.putProducer()
    return await act({ serverId: server.pid, broker, receiver, sending: new Sending(broker) })
  } finally {
    await broker.close()
    // Before the server: it would wait for what hangs there.
    await receiver.stop()
    await server.stop()
  }
}

/** What has arrived is delivered a moment later: waits until nothing of the channel is queued or in flight. */
export async function untilDelivered(broker: Broker, channel: string): Promise<void> {
  const limitMs = performance.now() + 60_000
  for (let left = await broker.waiting(channel); left > 0; left = await broker.waiting(channel)) {
    if (performance.now() > limitMs) throw new Error(`${left} jobs of ${channel} are not delivered`)
    await setTimeout(20)
  }
}
