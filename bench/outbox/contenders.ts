/** Those who send messages from a table to their receiver, behind one interface. */
import { setTimeout } from 'node:timers/promises'
import {
  createDispatcher,
  httpTransport,
  type RunningDispatcher,
  type Transport,
} from '../../src/sources/outbox/index.ts'
import { openBareLoop } from './bare.ts'
import { openPeer, type PeerSettings } from './peer.ts'
import { inFlight, openPosts, postAll } from './posts.ts'
import { type HttpReceiver, IN_FLIGHT } from './receive.ts'
import { loadMessages, makeTables, reconcile, watchEmptiness } from './table.ts'
import type { DispatchRun } from './task.ts'

export interface Contender {
  /** Puts messages where it will find them. */
  load(count: number): Promise<void>
  /** Sends `count` messages, all that there are, or as many as it can until the deadline; gives how many. */
  send(count: number, deadlineMs: number): Promise<number>
  /** Ends what goes on. */
  rest(): Promise<void>
  /** Throws unless everything that was put there is there, and `sent` of it done. */
  reconcile(added: number, sent: number): Promise<void>
  close(): Promise<void>
}

export interface Setting extends DispatchRun {
  readonly store: string
  /** null: messages go to a function that does nothing. */
  readonly http: HttpReceiver | null
}

export function openContender(setting: Setting): Promise<Contender> {
  switch (setting.system) {
    case 'dispatcher':
      return openOurs(setting)
    case 'bare':
      return openBare(setting)
    case 'posts':
      return openPostsOnly(setting)
    case 'peer-default':
      return openPeerAs(setting, 'default')
    case 'peer-best':
      return openPeerAs(setting, 'best')
  }
}

/** Between two looks at whether the last settlement was written. */
const LOOK_MS = 2

async function openOurs({ store, batchSize, http }: Setting): Promise<Contender> {
  await makeTables(store)
  const watch = await watchEmptiness(store)
  let running: RunningDispatcher | null = null
  return {
    load: (count) => loadMessages(store, count, 'pending'),
    async send(count) {
      const { promise: all, resolve } = Promise.withResolvers<void>()
      let delivered = 0
      const transport = counted(http, () => {
        delivered += 1
        if (delivered === count) resolve()
      })
      running = createDispatcher({ url: store, transport, batchSize, concurrency: IN_FLIGHT })
      await running.start()
      await all
      while (!(await watch.isEmpty())) await setTimeout(LOOK_MS)
      return delivered
    },
    async rest() {
      await running?.stop()
    },
    reconcile: (added, sent) => reconcile(store, added, sent),
    close: () => watch.close(),
  }
}

/** A transport that tells when it has delivered. */
function counted(http: HttpReceiver | null, delivered: () => void): Transport {
  if (http === null) return { name: 'function', deliver: async () => delivered() }
  const inner = httpTransport({ url: http.url })
  return {
    name: 'http',
    async deliver(message, signal) {
      await inner.deliver(message, signal)
      delivered()
    },
    close: async () => inner.close?.(),
  }
}

async function openBare({ store, batchSize, http }: Setting): Promise<Contender> {
  await makeTables(store)
  const loop = await openBareLoop(store, batchSize)
  const posts = http === null ? null : openPosts(http.url)
  return {
    load: (count) => loadMessages(store, count, 'pending'),
    send: () =>
      loop.run(async (rows) => {
        if (posts !== null)
          await inFlight(rows, ({ payload, idempotency_key }) => posts.post(payload, idempotency_key))
      }),
    rest: async () => {},
    reconcile: (added, sent) => reconcile(store, added, sent),
    async close() {
      await posts?.close()
      await loop.close()
    },
  }
}

async function openPostsOnly({ http }: Setting): Promise<Contender> {
  if (http === null) throw new Error('there is nobody to post to')
  const posts = openPosts(http.url)
  return {
    load: async () => {},
    async send(count) {
      await postAll(posts.post, count)
      return count
    },
    rest: async () => {},
    reconcile: async () => {},
    close: () => posts.close(),
  }
}

async function openPeerAs({ store }: Setting, settings: PeerSettings): Promise<Contender> {
  const peer = await openPeer(store, settings)
  let end: (() => Promise<void>) | null = null
  return {
    load: (count) => peer.load(count),
    async send(count, deadlineMs) {
      const before = (await peer.counts()).processed
      let delivered = 0
      end = peer.listen(async () => {
        delivered += 1
      })
      const late = () => performance.now() >= deadlineMs
      while (!late() && (delivered < count || (await peer.hasPending()))) await setTimeout(LOOK_MS)
      return (await peer.counts()).processed - before
    },
    async rest() {
      await end?.()
    },
    async reconcile(added) {
      const books = await peer.counts()
      if (books.all !== added || books.processed + books.dead + books.pending !== added)
        throw new Error(`${added} added: the table holds ${JSON.stringify(books)}`)
    },
    close: () => peer.close(),
  }
}
