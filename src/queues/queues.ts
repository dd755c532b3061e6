/**
 * Queues over a store: finds the queue, checks the request in the contract's order, and hands it to the queue's loop (produce, lease,
 * complete, retry, extend) or to the store (everything else). Failures are `BartlebyError`s with a code of the error table.
 */
import type { Clock, Instant } from '../core/clock.ts'
import { usFromNs } from '../core/duration.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import { checkKsuid, serialFromId } from '../core/ksuid.ts'
import type { Log } from '../core/log.ts'
import type { Rounds, Service } from '../core/rounds.ts'
import type { LetterSource } from '../letters/source.ts'
import type { OfficeRuns, OfficeWork } from '../letters/work.ts'
import type { Announcer } from '../store/announcer.ts'
import { type Database, type Session, StoreUnavailable } from '../store/database.ts'
import { readCounts } from './counts.ts'
import { Cycle } from './cycles/cycle.ts'
import type { QueueLoop } from './cycles/loop.ts'
import { LoopDirectory, type QueuesOptions } from './cycles/loops.ts'
import { runsBySerial, storableRun } from './death/cases.ts'
import { queueLetterSource } from './death/letter-source.ts'
import { partitionStats, readOverview } from './overview.ts'
import type {
  ClearRequest,
  CompleteRequest,
  DeleteItemsRequest,
  ExtendRequest,
  GivenError,
  ImportOutcome,
  ImportRequest,
  ItemContent,
  LeasedBatch,
  LeaseRequest,
  ListItemsRequest,
  ListQueuesRequest,
  PeekRequest,
  ProduceReceipt,
  ProduceRequest,
  QueueDepth,
  QueueInfo,
  QueueOverview,
  QueueSettings,
  QueueStats,
  RetryRequest,
  StoredItem,
} from './queue.ts'
import { type Partition, type QueueRecord, readQueue, readQueues } from './records.ts'
import { SHELF } from './schema.ts'
import { createFromSettings, deleteByName, updateFromSettings } from './settings.ts'
import { listItems, readReady } from './sql/inspect.ts'
import {
  checkClear,
  checkComplete,
  checkIds,
  checkLease,
  checkListQueues,
  checkLookupName,
  checkProduce,
  checkRetry,
  firstSerialFrom,
  listLimit,
  MAX_QUEUES_LISTED,
  parseExtension,
  peekLimit,
} from './validate.ts'
import { type Clearing, clearQueue, defineRemoval, deleteItems } from './verbs/clear.ts'
import { importInto } from './verbs/import.ts'
import { toAskedItem } from './verbs/produce.ts'
import { type Announce, putItems } from './verbs/put.ts'
import { firstProblem, serialsOf } from './verbs/settle.ts'

/** Everything that can be asked of queues. */
export type Queues = Omit<
  StoreQueues,
  'name' | 'rounds' | 'announcer' | 'start' | 'stop' | 'letterSource' | 'put'
>

export class StoreQueues implements Service {
  readonly name = 'queues'
  readonly #db: Database
  readonly #clock: Clock
  readonly #loops: LoopDirectory
  readonly #clearing: Clearing
  readonly #runs: OfficeRuns
  readonly #announce: Announce = (arrivals, nextDeadline) => this.#loops.committed(arrivals, nextDeadline)

  constructor(db: Database, clock: Clock, log: Log, options: QueuesOptions) {
    this.#db = db
    this.#clock = clock
    this.#loops = new LoopDirectory(db, clock, log, options)
    this.#clearing = { db, clock, registers: options.registers, announce: this.#announce }
    this.#runs = options.runs
    defineRemoval(options.runs, this.#clearing)
  }

  get rounds(): readonly Rounds[] {
    return this.#loops.rounds
  }

  /** Announces ready items to other servers. Starts and stops with the queues. */
  get announcer(): Announcer {
    return this.#loops.announcer
  }

  /** Starts sweeping and listening; queues work before that. */
  start(): Promise<void> {
    return this.#loops.start()
  }

  /** Answers waiting leases, finishes accepted writes, refuses later calls. */
  stop(): Promise<void> {
    return this.#loops.stop()
  }

  async produce(request: ProduceRequest): Promise<ProduceReceipt> {
    return this.#withLoop(request.queueName, (loop) => {
      checkProduce(request)
      return loop.produce({ items: request.items.map(toAskedItem) })
    })
  }

  /** Long poll. Aborting `signal` drops the waiter at once; items leased already stay leased. */
  async lease(request: LeaseRequest, signal?: AbortSignal): Promise<LeasedBatch> {
    return this.#withLoop(request.queueName, (loop) => {
      const timeoutNs = checkLease(request)
      return loop.lease({ clientId: request.clientId, batchSize: request.batchSize, timeoutNs }, signal)
    })
  }

  async complete(request: CompleteRequest): Promise<void> {
    await this.#withLoop(request.queueName, async (loop) => {
      const partition = partitionOf(loop.queue, request.partition)
      checkComplete(request)
      const serials = serialsOf(partition, request.ids)
      if (serials === null) throw await this.#problemWith(partition, request.ids, 'complete_not_leased')
      const runs = request.runs && runsBySerial(partition, request.runs)
      await loop.complete({ partition, serials, ...(runs === undefined ? {} : { runs }) })
    })
  }

  async retry(request: RetryRequest): Promise<void> {
    await this.#withLoop(request.queueName, async (loop) => {
      const partition = partitionOf(loop.queue, request.partition)
      checkRetry(request)
      const ids = request.items.map(({ id }) => id)
      const serials = serialsOf(partition, ids)
      if (serials === null) throw await this.#problemWith(partition, ids, 'retry_not_leased')
      await loop.retry({
        partition,
        items: request.items.map((item, i) => ({
          serial: serials[i] ?? 0,
          retryAt: item.retryAt ?? null,
          dead: item.dead ?? false,
          run: item.run == null ? null : storableRun(item.run),
          error: hasError(item) ? item : null,
          unspent: item.unspent ?? false,
        })),
      })
    })
  }

  /** Lengthens leases you hold, all or none, with the checks of complete; gives the new deadline. */
  async extend(request: ExtendRequest): Promise<Instant> {
    return this.#withLoop(request.queueName, async (loop) => {
      const partition = partitionOf(loop.queue, request.partition)
      checkIds(request.ids)
      const leaseNs = parseExtension(request.leaseTimeout) ?? loop.queue.leaseTimeoutNs
      const serials = serialsOf(partition, request.ids)
      if (serials === null) throw await this.#problemWith(partition, request.ids, 'extend_not_leased')
      return loop.extend({ partition, serials, leaseUs: usFromNs(leaseNs) })
    })
  }

  /** The next items that a lease would get. */
  async peek(request: PeekRequest): Promise<readonly StoredItem[]> {
    const queue = await this.#queueOf(request.queueName)
    const partition = partitionOf(queue, request.partition)
    const limit = peekLimit(request.limit)
    const now = this.#clock.now()
    return this.#db.session('queue.peek', (session) => readReady(session, partition, now, limit))
  }

  create(settings: QueueSettings): Promise<QueueInfo> {
    return this.#define(createFromSettings, settings)
  }

  update(settings: QueueSettings): Promise<QueueInfo> {
    return this.#define(updateFromSettings, settings)
  }

  async delete(request: { readonly queueName: string; readonly force?: boolean }): Promise<void> {
    this.#loops.checkOpen()
    const queue = await deleteByName(this.#runs, request)
    await this.#loops.remove(queue)
  }

  async list(request: ListQueuesRequest = {}): Promise<readonly QueueInfo[]> {
    this.#loops.checkOpen()
    const page = checkListQueues(request)
    return this.#db.session('queues.list', (session) => readQueues(session, page))
  }

  async info(queueName: string): Promise<QueueInfo> {
    return this.#queueOf(queueName)
  }

  async stats(queueName: string): Promise<QueueStats> {
    const loop = await this.#loopOf(queueName)
    const parts = loop.queue.partitions.map(({ part }) => part)
    const counts = await this.#db.session('queue.stats', (session) => readCounts(session, parts))
    const now = this.#clock.now()
    const { failures, ...load } = loop.load
    const partitions = counts.map((count, partition) => ({
      partition,
      failures,
      ...partitionStats(count, now),
    }))
    return { queueName, ...load, partitions }
  }

  /** All queues at one moment, in a fixed number of statements. */
  async depths(): Promise<readonly QueueDepth[]> {
    const queues = await this.#readOverview('queues.depths', { limit: MAX_QUEUES_LISTED })
    return queues.map(({ queueName, ready, leased, scheduled, held, dead, oldestAt }) => ({
      queueName,
      ready,
      leased,
      scheduled,
      held,
      dead,
      oldestAt,
    }))
  }

  /** One page of queues with settings and depths. */
  overview(request: ListQueuesRequest = {}): Promise<readonly QueueOverview[]> {
    return this.#readOverview('queues.overview', request)
  }

  async clear(request: ClearRequest): Promise<void> {
    const queue = await this.#queueOf(request.queueName)
    checkClear(request)
    await clearQueue(this.#clearing, queue, request)
  }

  async reload(queueName: string): Promise<void> {
    const loop = await this.#loopOf(queueName)
    await loop.reload()
  }

  async listItems(request: ListItemsRequest): Promise<readonly StoredItem[]> {
    return this.#list(request, [SHELF.queue, SHELF.held])
  }

  async listScheduled(request: ListItemsRequest): Promise<readonly StoredItem[]> {
    return this.#list(request, [SHELF.scheduled])
  }

  async importItems(request: ImportRequest): Promise<readonly ImportOutcome[]> {
    const queue = await this.#queueOf(request.queueName)
    const partition = partitionOf(queue, request.partition)
    if (request.items.length === 0) throw failure('import_empty')
    const { cycle, outcomes } = await this.#db.transaction('items.import', async (tx) => {
      const cycle = new Cycle(tx, queue, this.#clock.now())
      const outcomes = await importInto(cycle, partition, request.items)
      cycle.writeCounts()
      return { cycle, outcomes }
    })
    this.#loops.committed(cycle.arrivals, cycle.nextDeadline)
    return outcomes
  }

  async deleteItems(request: DeleteItemsRequest): Promise<void> {
    const queue = await this.#queueOf(request.queueName)
    const partition = partitionOf(queue, request.partition)
    if (request.ids.length === 0) throw failure('delete_empty')
    for (const id of request.ids) {
      const reason = checkKsuid(id)
      if (reason !== null) throw failure('item_id_malformed', { id, reason })
    }
    const serials = new Set(request.ids.flatMap((id) => serialFromId(partition.idPrefix, id) ?? []))
    await deleteItems(
      this.#clearing,
      partition,
      [...serials].sort((a, b) => a - b),
    )
  }

  /** Test control: holds produce, lease, complete, retry and all lifecycle work of one queue. */
  async pause(queueName: string, paused: boolean): Promise<void> {
    await this.#loops.pause(await this.#loopOf(queueName), paused)
  }

  /** Test control: runs everything due in every queue and answers what became answerable. */
  async settle(): Promise<void> {
    await this.#loops.settle()
  }

  /** The way back into queues for letters that came from one or name one. */
  letterSource(name: LetterSource['name']): LetterSource {
    return queueLetterSource(name, this.#announce)
  }

  /** Puts items into a queue in the caller's transaction. */
  async put(work: OfficeWork, queueName: string, items: readonly ItemContent[]): Promise<void> {
    this.#loops.checkOpen()
    checkLookupName(queueName)
    await putItems(work, queueName, items, this.#announce)
  }

  /** Test control: when the waiting leases run out of time. */
  waitDeadlines(): readonly Instant[] {
    return this.#loops.waitDeadlines()
  }

  async #define(define: typeof createFromSettings, settings: QueueSettings): Promise<QueueInfo> {
    this.#loops.checkOpen()
    const queue = await define(this.#db, this.#clock, settings)
    this.#loops.open(queue)
    this.#loops.tryHeldSoon()
    return queue
  }

  async #readOverview(verb: string, request: ListQueuesRequest): Promise<readonly QueueOverview[]> {
    const page = checkListQueues(request)
    const read = (session: Session) => readOverview(session, page)
    // On SQLite nothing of this server comes in between, and a snapshot opens a connection, which takes ten times as long.
    return this.#db.dialect === 'sqlite' ? this.#db.session(verb, read) : this.#db.snapshot(verb, read)
  }

  async #list(request: ListItemsRequest, shelves: readonly number[]): Promise<readonly StoredItem[]> {
    const queue = await this.#queueOf(request.queueName)
    const partition = partitionOf(queue, request.partition)
    const from = firstSerialFrom(partition, request.pivot ?? '')
    const limit = listLimit(request.limit)
    if (from === null) return []
    return this.#db.session('items.list', (session) =>
      listItems(session, partition, shelves, { from, limit }),
    )
  }

  /** Asks the queue's loop. Another server may have deleted and recreated the queue; then the new loop is asked once. */
  async #withLoop<T>(name: string, ask: (loop: QueueLoop) => Promise<T>): Promise<T> {
    try {
      const loop = await this.#loopOf(name)
      try {
        return await ask(loop)
      } catch (error) {
        if (!(error instanceof BartlebyError && error.code === 'queue_unknown')) throw error
        return await ask(await this.#loopOf(name))
      }
    } catch (error) {
      // The store failed while the queue or its items were looked up: nothing was written.
      if (error instanceof StoreUnavailable) throw failure('store_write_failed', undefined, { cause: error })
      throw error
    }
  }

  async #loopOf(name: string): Promise<QueueLoop> {
    this.#loops.checkOpen()
    checkLookupName(name)
    const loop = await this.#loops.find(name)
    if (loop === null) throw failure('queue_unknown', { name })
    return loop
  }

  async #queueOf(name: string): Promise<QueueRecord> {
    this.#loops.checkOpen()
    checkLookupName(name)
    const queue = await this.#db.session('queues.info', (session) => readQueue(session, name))
    if (queue === null) throw failure('queue_unknown', { name })
    return queue
  }

  async #problemWith(partition: Partition, ids: readonly string[], code: Parameters<typeof firstProblem>[3]) {
    const problem = await this.#db.session('queue.diagnose', (session) =>
      firstProblem(session, partition, ids, code),
    )
    return problem ?? failure('store_write_failed')
  }
}

function partitionOf(queue: QueueRecord, number = 0): Partition {
  const partition = queue.partitions[number]
  if (partition === undefined) throw failure('partition_unknown', { partition: number })
  return partition
}

const hasError = ({ errorClass, errorMessage, errorStack }: GivenError): boolean =>
  Boolean(errorClass || errorMessage || errorStack)
