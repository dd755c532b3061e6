/**
 * Reads the two tables and the poison queues. A table is asked for what was written since the last complete reading, by the service's own
 * Timestamp and with an overlap: what several front ends of the service write becomes visible in no order. Only a reading that came to its
 * end moves the mark, and what is read twice is known by its ETag; so a server can die anywhere.
 */
import type { TableClient } from '@azure/data-tables'
import { type Instant, later } from '../../core/clock.ts'
import { Rounds } from '../../core/rounds.ts'
import { formatMicros } from '../../core/timestamp.ts'
import { entriesOfSources, fileReports, type ReadReport } from '../../history/intake.ts'
import { closeCasesOf } from '../../letters/confirm.ts'
import { ACTS, type LetterId } from '../../letters/letter.ts'
import { lockLetters } from '../../letters/locked.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import { isTrouble } from './account.ts'
import {
  dlqEntity,
  type HistoryEntity,
  historyEntity,
  type RawEntity,
  sourceIdOf,
  stampOf,
} from './entity.ts'
import type { Reading } from './face.ts'
import { membersOf, messageOf } from './message.ts'
import { AZURE, type AzureParts, engineOf } from './parts.ts'
import { entitiesNamed, entitiesOf, markOfTable, putMark, putState, sentWith } from './register.ts'
import { STATE } from './schema.ts'
import { type Incoming, settleArrived, takeChange, takeNew } from './take-in.ts'

/** What is written in the last minute is read again. */
const OVERLAP_US = 60_000_000n
const PAGE = 500
/** Letters of one transaction. */
const BITE = 100
/** Remembered entities that were read and did not change; beyond that they are asked for in the store. */
const MOST_REMEMBERED = 200_000
/** Azure takes no more comparisons than this in one filter. */
const MOST_COMPARED = 12
/** Messages of a poison queue are hidden from others while they are filed. */
const POISON_HIDDEN_S = 60
const POISON_BATCH = 32
const POISON = /-poison$/
const DAY_US = 86_400_000_000n

interface Table {
  readonly name: string
  readonly client: TableClient
  /** Files a page; gives how many of it have to be read again. */
  readonly take: (page: readonly RawEntity[]) => Promise<number>
}

export class Intake {
  readonly rounds: readonly Rounds[]
  readonly #parts: AzureParts
  readonly #readings = new Map<string, Reading>()
  readonly #seen = new Map<string, string>()

  constructor(parts: AzureParts) {
    this.#parts = parts
    const { clock, log, settings, account } = parts
    const rounds = (name: string, act: (signal: AbortSignal) => Promise<void>) =>
      new Rounds({
        ...{ name: `azure.${name}`, clock, log, everyUs: (failures) => this.#pauseUs(failures), act },
        trouble: `azure: ${name} could not be read; it is tried again`,
      })
    const tables: readonly Table[] = [
      { name: settings.dlqTableName, client: account.tables.dlq, take: (page) => this.#takeLetters(page) },
      {
        name: settings.historyTableName,
        client: account.tables.history,
        take: (page) => this.#takeHistory(page),
      },
    ]
    this.rounds = [
      ...tables.map((table) => rounds(table.name, (signal) => this.#read(table, signal))),
      ...settings.poison.map((queue) => rounds(queue, (signal) => this.#readPoison(queue, signal))),
    ]
  }

  readings(): readonly Reading[] {
    return [...this.#readings.values()]
  }

  #pauseUs(failures: number): bigint {
    const { account, clock, settings } = this.#parts
    const usual = BigInt(settings.pollSeconds) * 1_000_000n * BigInt(Math.min(1 + failures, 5))
    const until = account.slowUntil
    return until === null || until - clock.now() < usual ? usual : until - clock.now()
  }

  /** One reading, from the mark to the end. */
  async #read(table: Table, signal: AbortSignal): Promise<void> {
    const { db, clock, account } = this.#parts
    const name = account.called(table.name)
    const mark = await db.session('azure.mark', (session) => markOfTable(session, name))
    let readTo = mark
    let again = 0
    let isMissing = false
    try {
      for await (const page of this.#pages(table.client, mark, signal)) {
        if (signal.aborted) return
        again += await table.take(page)
        for (const raw of page) {
          const writtenAt = timeOf(raw)
          if (writtenAt !== null && (readTo === null || writtenAt > readTo)) readTo = writtenAt
        }
      }
    } catch (error) {
      // Engines make their tables when they need them.
      if (!isTrouble(error, 'gone')) throw error
      isMissing = true
    }
    if (readTo !== null && readTo !== mark && again === 0)
      await db.session('azure.mark', (session) => putMark(session, name, readTo))
    this.#readings.set(table.name, { name: table.name, readTo, readAt: clock.now(), isMissing })
  }

  async *#pages(
    client: TableClient,
    mark: Instant | null,
    signal: AbortSignal,
  ): AsyncGenerator<readonly RawEntity[]> {
    const { account, settings } = this.#parts
    const { engines } = settings
    const isAsked = engines !== undefined && engines.length <= MOST_COMPARED
    const since = mark === null ? [] : [`Timestamp ge datetime'${formatMicros(later(mark, -OVERLAP_US))}'`]
    const among = isAsked
      ? [`(${engines.map((name) => `PartitionKey eq '${name.replaceAll("'", "''")}'`).join(' or ')})`]
      : []
    const filter = [...among, ...since].join(' and ')
    let continuationToken: string | undefined
    do {
      const { value } = await account.call(
        (abortSignal) =>
          client
            .listEntities<object>({
              disableTypeConversion: true,
              abortSignal,
              queryOptions: filter === '' ? {} : { filter },
            })
            .byPage({ maxPageSize: PAGE, ...(continuationToken !== undefined && { continuationToken }) })
            .next(),
        signal,
      )
      // A page may be empty and have a token all the same. The client puts the token on the list.
      const page = (value ?? []) as readonly RawEntity[] & { readonly continuationToken?: string }
      continuationToken = page.continuationToken
      yield engines === undefined
        ? page
        : page.filter(({ partitionKey }) => engines.includes(String(partitionKey)))
    } while (continuationToken !== undefined && !signal.aborted)
  }

  async #takeLetters(page: readonly RawEntity[]): Promise<number> {
    const { account, settings } = this.#parts
    const incoming = page.flatMap((raw): Incoming[] => {
      const entity = dlqEntity(raw)
      const sourceId = sourceIdOf(account.called(settings.dlqTableName), entity)
      if (this.#seen.get(sourceId) === entity.etag) return []
      return [{ ...entity, sourceId, engine: engineOf(this.#parts, entity.partitionKey) }]
    })
    let again = 0
    for (let from = 0; from < incoming.length; from += BITE)
      again += await this.#takeBite(incoming.slice(from, from + BITE))
    return again
  }

  async #takeBite(incoming: readonly Incoming[]): Promise<number> {
    const known = await this.#parts.db.session('azure.known', (session) =>
      entitiesNamed(
        session,
        incoming.map(({ sourceId }) => sourceId),
      ),
    )
    const fresh = incoming.filter(({ sourceId }) => !known.has(sourceId))
    const { later } = fresh.length === 0 ? { later: 0 } : await takeNew(this.#parts, fresh)
    let again = later
    for (const each of incoming) {
      const row = known.get(each.sourceId)
      const isChanged = row !== undefined && row.etag !== each.etag
      if (isChanged && (await takeChange(this.#parts, each)) === 'later') again++
      else if (later === 0) this.#remember(each)
    }
    return again
  }

  #remember({ sourceId, etag }: Incoming): void {
    if (this.#seen.size >= MOST_REMEMBERED) this.#seen.clear()
    if (etag !== null) this.#seen.set(sourceId, etag)
  }

  async #takeHistory(page: readonly RawEntity[]): Promise<number> {
    const { db, clock, account, settings, counters } = this.#parts
    const oldest = later(clock.now(), -BigInt(settings.retentionDays) * DAY_US)
    const entities = page
      .map(historyEntity)
      .filter((entity) => this.#seen.get(this.#historyId(entity)) !== entity.etag)
      // What retention would remove at once is not worth reading.
      .filter(({ createdAt }) => createdAt >= oldest)
    for (let from = 0; from < entities.length; from += BITE) {
      const bite = entities.slice(from, from + BITE)
      await inOffice(db, clock, 'azure.history', async (work) => {
        const reports = bite.map((entity) =>
          reportOf(entity, engineOf(this.#parts, entity.partitionKey), this.#historyId(entity)),
        )
        const recorded = await fileReports(
          work.tx,
          reports,
          work.now,
          await entriesOfSources(work.tx, reports),
        )
        const fresh = recorded.filter(({ created }) => created).length
        const confirmed = await confirmThese(work, bite, (entity) =>
          engineOf(this.#parts, entity.partitionKey),
        )
        work.afterCommit(() => {
          counters.add('history', fresh)
          counters.add('confirmed', confirmed)
        })
      })
      // Read again while it may be older than what we know of its letter: a send ends after the engine has done its work.
      const settled = later(account.atService(clock.now()), -OVERLAP_US)
      for (const entity of bite)
        if (entity.writtenAt < settled) this.#seen.set(this.#historyId(entity), entity.etag)
    }
    return 0
  }

  #historyId(entity: HistoryEntity): string {
    const { account, settings } = this.#parts
    return sourceIdOf(account.called(settings.historyTableName), entity)
  }

  /** Takes messages in and then away: one that comes back after a crash is known. */
  async #readPoison(name: string, signal: AbortSignal): Promise<void> {
    const { account, clock } = this.#parts
    const queue = account.queue(name)
    let isMissing = false
    try {
      for (;;) {
        const { receivedMessageItems: messages } = await account.call(
          (abortSignal) =>
            queue.receiveMessages({
              numberOfMessages: POISON_BATCH,
              visibilityTimeout: POISON_HIDDEN_S,
              abortSignal,
            }),
          signal,
        )
        if (messages.length > 0) {
          const incoming = messages.map((message) => this.#poisoned(name, message))
          if ((await takeNew(this.#parts, incoming)).later > 0) return
        }
        for (const { messageId, popReceipt } of messages)
          await account.call(
            (abortSignal) => queue.deleteMessage(messageId, popReceipt, { abortSignal }),
            signal,
          )
        if (messages.length < POISON_BATCH || signal.aborted) break
      }
    } catch (error) {
      if (!isTrouble(error, 'gone')) throw error
      isMissing = true
    }
    this.#readings.set(name, { name, readTo: null, readAt: clock.now(), isMissing })
  }

  #poisoned(
    name: string,
    message: {
      readonly messageId: string
      readonly messageText: string
      readonly dequeueCount: number
      readonly insertedOn: Date
    },
  ): Incoming {
    const { account, clock, engines } = this.#parts
    const originalQueue = name.replace(POISON, '')
    const found = messageOf(message.messageText)
    const { instanceId, correlationId } = membersOf(found.payload)
    const insertedAt = later(clock.now(), BigInt(message.insertedOn.getTime()) * 1_000n - clock.now())
    return {
      ...found,
      sourceId: `${account.name}/${name}/${message.messageId}`,
      engine: engines.queues().find(({ queue }) => queue === originalQueue)?.engine ?? AZURE,
      ...{ partitionKey: null, rowKey: null, etag: null, writtenAt: insertedAt, originalQueue },
      instanceId: textOr(instanceId, 'publisher'),
      correlationId: textOr(correlationId, message.messageId),
      errorMessage: `the message lies in the poison queue '${name}'`,
      dequeueCount: Math.max(1, message.dequeueCount),
      ...{ firstFailureAt: insertedAt, lastFailureAt: insertedAt },
      ...{ status: 'Pending', notes: null, resolvedBy: null },
      headers: { Queue: name, MessageId: message.messageId },
    }
  }
}

const textOr = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? value.slice(0, 256) : otherwise

function timeOf(raw: RawEntity): Instant | null {
  try {
    return stampOf(raw).writtenAt
  } catch {
    return null
  }
}

const OPERATION_FORM = /[^a-z0-9-]+/g

/** An operation of the engine. Acts on letters are recorded by the office alone. */
function operationOf(text: string): string {
  const name = text.toLowerCase().replace(OPERATION_FORM, '-').replace(/^-+/, '').slice(0, 57)
  return name === '' || ACTS.some((act) => act === name) ? `engine-${name || 'run'}` : name
}

function reportOf(entity: HistoryEntity, engine: string, sourceId: string): ReadReport {
  const { instanceId, operation, status, durationMs, input, output, error, createdAt, correlationId } = entity
  const bytes = (text: string | null) => (text === null ? null : Buffer.from(text.toWellFormed()))
  return {
    ...{ engine, instanceId, status, durationMs, error, createdAt, correlationId, sourceId },
    ...{ operation: operationOf(operation), actor: AZURE, input: bytes(input), output: bytes(output) },
  }
}

/** Letters whose engine says that it succeeded after they were sent back; gives how many. */
async function confirmThese(
  work: OfficeWork,
  entities: readonly HistoryEntity[],
  engineOfEntity: (entity: HistoryEntity) => string,
): Promise<number> {
  const done = new Set<LetterId>()
  const succeeded = entities.filter(({ status }) => status === 'Succeeded')
  const sentOf = await sentWith(
    work.tx,
    succeeded.map(({ correlationId }) => correlationId),
  )
  for (const entity of succeeded) {
    for (const { sentAt, letterId } of sentOf(entity.correlationId, engineOfEntity(entity)))
      if (sentAt !== null && entity.writtenAt >= sentAt) done.add(letterId)
  }
  if (done.size === 0) return 0
  const ids = [...done].sort((a, b) => (a < b ? -1 : 1))
  await lockLetters(work.tx, ids)
  for (const row of (await entitiesOf(work.tx, ids)).values()) {
    if (row.state === STATE.uncertain) await settleArrived(work, row)
    // One that fails from now on is another failure, not this one again.
    if (row.state === STATE.uncertain || row.state === STATE.sent)
      await putState(work.tx, row.sourceId, { state: STATE.resting })
  }
  await closeCasesOf(work, ids, new Map())
  return ids.length
}
