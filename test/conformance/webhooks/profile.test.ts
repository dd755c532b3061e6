/**
 * The conformance profile: two servers with its configuration files on one database, and a client that does all that the
 * integration client of existing users does. Time is moved, and only while nothing is under way: one process is servers, client and
 * receiver here, and on a busy machine attempts would time out. In `npm run prove` the servers are processes of their own, the
 * load is the full one, and time passes by itself.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isProof, PATIENCE_MS, sizeOf } from '../../world/limits.ts'
import { Receiver } from '../../world/receiver.ts'
import { type SpawnedServer, spawnServer } from '../../world/server.ts'
import { type StoreKind, stores } from '../../world/stores.ts'
import { systemNow } from '../../world/time.ts'
import { Broker } from '../../world/webhooks/broker.ts'
import { WebhookClient } from '../../world/webhooks/client.ts'
import { type Pace, ProfileClient, type ProfileParties } from './profile-client.ts'
import { VECTORS } from './vectors.ts'

const STEPS = sizeOf([1, 10, 100], [1, 10, 100, 500, 1_000, 2_500, 5_000, 10_000])
/** A build machine has other things to do as well. */
const SLOWEST_MS = sizeOf(PATIENCE_MS, 2_000)

const profile = (name: string) => fileURLToPath(new URL(`../../../profiles/${name}.yaml`, import.meta.url))

const sleep = (seconds: number) => new Promise<void>((resolve) => setTimeout(resolve, seconds * 1_000))

/** Time that passes by itself. To look more often would slow down what is looked at. */
const live: Pace = {
  wait: sleep,
  within: async (seconds, holds) => {
    const end = performance.now() + seconds * 1_000
    for (;;) {
      try {
        return await holds()
      } catch (error) {
        if (performance.now() > end) throw error
      }
      await sleep(0.05)
    }
  },
}

/** Time that is moved: in small steps where seconds matter, in larger ones where minutes do. */
const moved = (broker: Broker): Pace => ({
  wait: (seconds) => broker.pass(seconds, 1),
  within: (seconds, holds) => broker.within(seconds, holds, seconds > 60 ? 10 : 1),
})

interface Stage {
  readonly parties: ProfileParties
  readonly pace: Pace
  clear(): Promise<void>
}

const MAIN = { config: profile('webhooks-conformance') }
const GATEWAY = { config: profile('webhooks-conformance-hmac') }

/** Servers in this process, which share a clock. */
async function movedStage(store: StoreKind): Promise<Stage> {
  const main = await Broker.start(store, MAIN)
  const gateway = await Broker.start(store, { ...GATEWAY, beside: main })
  const { client, receiver } = main
  return {
    parties: { main: client, gateway: gateway.client, receiver, now: () => main.now },
    pace: moved(main),
    clear: async () => {
      await gateway.stop()
      await main.stop()
    },
  }
}

/** Servers as users run them. */
async function liveStage(store: StoreKind): Promise<Stage> {
  const place = await store.fresh()
  const receiver = await Receiver.start()
  const servers: SpawnedServer[] = []
  // One after the other: the first brings the store up to date.
  for (const { config } of [MAIN, GATEWAY]) {
    servers.push(await spawnServer({ store: place.url, config, testApi: false }))
  }
  const [main, gateway] = servers.map(({ url }) => new WebhookClient(url))
  if (main === undefined || gateway === undefined) expect.fail('two were started')
  return {
    parties: { main, gateway, receiver, now: systemNow },
    pace: live,
    clear: async () => {
      main.close()
      gateway.close()
      for (const server of servers) await server.stop()
      await receiver.close()
      await place.dispose()
    },
  }
}

describe.each(stores)('the conformance profile on $name', (store) => {
  let stage: Stage
  let client: ProfileClient

  beforeAll(async () => {
    stage = await (isProof ? liveStage : movedStage)(store)
    client = new ProfileClient(stage.parties, stage.pace)
  })

  afterAll(() => stage?.clear())

  it('is set up', () => client.setUp())

  it.each(STEPS)('delivers %i messages', (step) => client.load(step))

  it('lets consumers pull', () => client.pull())

  it('keeps what died, and sends it again', () => client.deadLetters())

  it('sends messages at their time', () => client.scheduled())

  it('removes what died', () => client.removal())

  it('wants signatures at the gateway', () => client.gateway(VECTORS.hmac.secretBase64))

  it('has sent nothing else, and answered in time', async () => {
    await stage.pace.wait(10)
    client.expectNothingElse()
    const { main, gateway } = stage.parties
    expect(Math.max(main.slowestMs, gateway.slowestMs)).toBeLessThan(SLOWEST_MS)
  })
})
