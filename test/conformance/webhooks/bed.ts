/** What the files about the webhook API stand on: the same promises on every store, one server per file, store and settings. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { overlaid } from '../../world/server.ts'
import { type StoreKind, stores } from '../../world/stores.ts'
import { Broker, type BrokerOptions, QUICK } from '../../world/webhooks/broker.ts'

export { type Broker, expectRefusal, expectStatus } from '../../world/webhooks/broker.ts'
export * from '../../world/webhooks/client.ts'
export * from './lane.ts'

/** Gives the broker of the running test. */
export type Ground = () => Broker

/** The same promises on every store, with the settings of the conformance profile and what is put over them. */
export function brokers(
  title: string,
  body: (broker: Ground, store: StoreKind) => void,
  options: BrokerOptions = {},
): void {
  describe.each(stores)(`${title} on $name`, (store) => {
    let broker: Broker | undefined

    beforeAll(async () => {
      broker = await Broker.start(store, { ...options, webhooks: overlaid(QUICK, options.webhooks) })
    })
    afterAll(async () => {
      await broker?.stop()
    })

    body(() => broker ?? expect.fail('the server has not started'), store)
  })
}
