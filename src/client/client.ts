/**
 * A typed client of the queue API, on `fetch` and JSON: one method per call. It holds no connection and no state;
 * `consume` starts a `Consumer`, which does and which the caller stops.
 */
import { Consumer, type ConsumerOptions, type ItemHandler } from './consume.ts'
import { durationMs } from './times.ts'
import {
  type CallOptions,
  type ConnectionOptions,
  call,
  type Endpoint,
  endpointOf,
  field,
} from './transport.ts'
import type {
  ClearRequest,
  ExtendRequest,
  ImportOutcome,
  ImportRequest,
  ItemIds,
  LeasedBatch,
  LeaseRequest,
  ListItemsRequest,
  ListRequest,
  NewItemWithKey,
  PeekedItem,
  PeekRequest,
  ProduceReceipt,
  ProduceRequest,
  Queue,
  QueueSettings,
  QueueStats,
  RetryRequest,
  StoredItem,
} from './types.ts'
import * as wire from './wire.ts'

export type QueueClientOptions = ConnectionOptions

const DEFAULT_REQUEST_TIMEOUT = '1m'
/** How much longer than the server's own limit a call may take. */
const PATIENCE_MS = 15_000
const CALL_TIMEOUT_MS = 60_000

/**
 * @example
 * const client = new QueueClient({ url: 'http://127.0.0.1:1853' })
 * await client.produce({ queueName: 'orders', items: [{ payload: 'hello' }] })
 */
export class QueueClient {
  readonly #endpoint: Endpoint

  constructor(options: QueueClientOptions) {
    this.#endpoint = endpointOf(options)
  }

  /** Adds items; all of them or none. */
  async produce(request: ProduceRequest, options?: CallOptions): Promise<void> {
    await this.#call('/v1/queue.produce', produceBody(request), options)
  }

  /** Adds items and gives their ids; an item whose dedupe key is known is not added again. */
  async produceWithIds(
    request: ProduceRequest<NewItemWithKey>,
    options?: CallOptions,
  ): Promise<ProduceReceipt> {
    return wire.receiptFromWire(await this.#call('/v1/queue.produceWithIds', produceBody(request), options))
  }

  /** Waits for items and leases them. Fails with code `lease_timed_out` when none came in time. */
  async lease(request: LeaseRequest, options?: CallOptions): Promise<LeasedBatch> {
    const requestTimeout = request.requestTimeout ?? DEFAULT_REQUEST_TIMEOUT
    const body = {
      queue_name: request.queueName,
      client_id: request.clientId,
      batch_size: request.batchSize,
      request_timeout: requestTimeout,
    }
    const timeoutMs = (durationMs(requestTimeout) ?? 0) + PATIENCE_MS
    return wire.batchFromWire(await this.#call('/v1/queue.lease', body, options, timeoutMs))
  }

  /** Removes leased items: they are processed. All of them or none. */
  async complete(request: ItemIds, options?: CallOptions): Promise<void> {
    const body = { ...idsBody(request), request_timeout: DEFAULT_REQUEST_TIMEOUT }
    await this.#call('/v1/queue.complete', body, options)
  }

  /** Gives leased items back: at once, later, or as dead, with what failed. All of them or none. */
  async retry(request: RetryRequest, options?: CallOptions): Promise<void> {
    const items = request.items.map(wire.retryItemToWire)
    const body = { queue_name: request.queueName, partition: request.partition, items }
    await this.#call('/v1/queue.retry', body, options)
  }

  /** Lengthens leases that you hold; gives their new deadline. All of them or none. */
  async extend(request: ExtendRequest, options?: CallOptions): Promise<Date> {
    const body = { ...idsBody(request), lease_timeout: request.leaseTimeout }
    const reply = await this.#call('/v1/queue.extend', body, options)
    return new Date(String(field(reply, 'lease_deadline')))
  }

  /** The next items that a lease would get. */
  async peek(request: PeekRequest, options?: CallOptions): Promise<readonly PeekedItem[]> {
    const body = { queue_name: request.queueName, partition: request.partition, limit: request.limit }
    return wire.listIn(await this.#call('/v1/queue.peek', body, options)).map(wire.peekedItemFromWire)
  }

  async stats(queueName: string, options?: CallOptions): Promise<QueueStats> {
    return wire.statsFromWire(await this.#call('/v1/queue.stats', { queue_name: queueName }, options))
  }

  /** Deletes items of all partitions. */
  async clear({ queueName, ...what }: ClearRequest, options?: CallOptions): Promise<void> {
    await this.#call('/v1/queue.clear', { queue_name: queueName, ...what }, options)
  }

  /** Makes the server read counts and deadlines of the queue afresh. */
  async reload(queueName: string, options?: CallOptions): Promise<void> {
    await this.#call('/v1/queue.reload', { queue_name: queueName }, options)
  }

  async create(settings: QueueSettings, options?: CallOptions): Promise<void> {
    await this.#call('/v1/queues.create', wire.settingsToWire(settings), options)
  }

  /**
   * Changes a queue. `maxAttempts`, `reference` and `deadQueue` are always set: left out means none. The rest stays
   * when left out.
   */
  async update(settings: QueueSettings, options?: CallOptions): Promise<void> {
    await this.#call('/v1/queues.update', wire.settingsToWire(settings), options)
  }

  /** Removes a queue with all its items. `force`: also when it is the dead queue of another. */
  async delete(request: { queueName: string; force?: boolean }, options?: CallOptions): Promise<void> {
    await this.#call('/v1/queues.delete', { queue_name: request.queueName, force: request.force }, options)
  }

  async list(request: ListRequest = {}, options?: CallOptions): Promise<readonly Queue[]> {
    const body = { pivot: request.pivot, limit: request.limit }
    return wire.listIn(await this.#call('/v1/queues.list', body, options)).map(wire.queueFromWire)
  }

  async info(queueName: string, options?: CallOptions): Promise<Queue> {
    return wire.queueFromWire(await this.#call('/v1/queues.info', { queue_name: queueName }, options))
  }

  /** Queued items of one partition as they are stored, leased ones included. */
  listItems(request: ListItemsRequest, options?: CallOptions): Promise<readonly StoredItem[]> {
    return this.#listStored('/v1/storage/items.list', request, options)
  }

  /** Items that wait for their time. */
  listScheduled(request: ListItemsRequest, options?: CallOptions): Promise<readonly StoredItem[]> {
    return this.#listStored('/v1/storage/scheduled.list', request, options)
  }

  /** Stores items with a state of your choice; ids are new, `sourceId` keeps repeats out. */
  async importItems(request: ImportRequest, options?: CallOptions): Promise<readonly ImportOutcome[]> {
    const items = request.items.map(wire.importItemToWire)
    const body = { queue_name: request.queueName, partition: request.partition, items }
    const reply = await this.#call('/v1/storage/items.import', body, options)
    return wire.listIn(reply).map((each) => {
      const item = wire.storedItemFromWire(each)
      // A skipped item is echoed as it was sent, hence without an id.
      return item.id === '' ? { outcome: 'existed' } : { outcome: 'imported', item }
    })
  }

  /** Deletes items whatever their state; unknown ids are ignored. */
  async deleteItems(request: ItemIds, options?: CallOptions): Promise<void> {
    await this.#call('/v1/storage/items.delete', idsBody(request), options)
  }

  /**
   * Leases items of a queue and runs `handler` for each until `stop()`: an item is completed when its handler
   * returns, retried later when it throws, and dead when it throws `DeadLetterError`.
   */
  consume(queueName: string, handler: ItemHandler, options?: ConsumerOptions): Consumer {
    return new Consumer(this, queueName, handler, options)
  }

  async #listStored(path: string, request: ListItemsRequest, options: CallOptions | undefined) {
    const { queueName, partition, pivot, limit } = request
    const body = { queue_name: queueName, partition, pivot, limit }
    return wire.listIn(await this.#call(path, body, options)).map(wire.storedItemFromWire)
  }

  #call(path: string, body: object, options?: CallOptions, timeoutMs = CALL_TIMEOUT_MS): Promise<unknown> {
    return call(this.#endpoint, path, body, timeoutMs, options?.signal)
  }
}

const idsBody = ({ queueName, partition, ids }: ItemIds) => ({ queue_name: queueName, partition, ids })

const produceBody = (request: ProduceRequest<NewItemWithKey>) => ({
  queue_name: request.queueName,
  request_timeout: request.requestTimeout ?? DEFAULT_REQUEST_TIMEOUT,
  items: request.items.map(wire.newItemToWire),
})
