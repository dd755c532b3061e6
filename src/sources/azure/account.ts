/**
 * A storage account as this source sees it: two tables and some queues behind clients that repeat nothing by themselves. What goes wrong
 * is an `AzureTrouble`, which says whether anything can have happened. Who is told to slow down waits, and so does everybody else here.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { TableClient } from '@azure/data-tables'
import type { QueueClient, QueueServiceClient } from '@azure/storage-queue'
import { type Clock, type Instant, later } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import { variableOf } from '../../core/settings/environment.ts'
import type { AzureTables } from '../../outgoing/azure/keys.ts'

/** The releases whose calls are made here, as package.json has them too. */
const LIBRARIES = {
  '@azure/data-tables': '13.3.2',
  '@azure/storage-queue': '12.32.0',
  '@azure/identity': '4.14.1',
} as const
type Library = keyof typeof LIBRARIES

const CONNECTION_STRING = 'AZURE_STORAGE_CONNECTION_STRING'

/** Throws where a library is not installed, with the command that installs what is missing. Loads nothing. */
export function requireAzureLibraries(names: readonly Library[]): void {
  const { resolve } = createRequire(import.meta.url)
  const missing = names.filter((name) => {
    try {
      resolve(name)
      return false
    } catch {
      return true
    }
  })
  if (missing.length === 0) return
  const wanted = missing.map((name) => `${name}@${LIBRARIES[name]}`).join(' ')
  throw failure('azure_library_missing', { command: `npm install ${wanted}` })
}

/** Longer than any answer takes; a client that waits for ever would hold its letter for ever. */
const PATIENCE_MS = 15_000
/** How long to wait when the service says nothing about it. */
const SLOW_DOWN_US = 5_000_000n
/** The service tells its time in whole seconds. */
const SECOND_US = 1_000_000n
/** Less than this is no difference: clocks of one data centre are as far apart. */
const SAME_TIME_US = 1_000_000n

type TroubleKind = 'throttled' | 'away' | 'denied' | 'gone' | 'changed' | 'refused'

/** A call on the account that did not succeed. */
export class AzureTrouble extends Error {
  readonly kind: TroubleKind
  readonly code: string
  /** Whether nothing can have happened. */
  readonly isCertain: boolean
  readonly retryAfterUs: bigint | null

  constructor(
    kind: TroubleKind,
    {
      code,
      message,
      isCertain,
      retryAfterUs = null,
    }: Pick<AzureTrouble, 'code' | 'message' | 'isCertain'> & {
      readonly retryAfterUs?: bigint | null
    },
  ) {
    super(message)
    this.name = 'AzureTrouble'
    this.kind = kind
    this.code = code
    this.isCertain = isCertain
    this.retryAfterUs = retryAfterUs
  }
}

export const isTrouble = (error: unknown, ...kinds: readonly TroubleKind[]): error is AzureTrouble =>
  error instanceof AzureTrouble && (kinds.length === 0 || kinds.includes(error.kind))

/** Nothing was sent to anybody. */
const UNREACHED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])
const LONGEST_MESSAGE = 300

/** What the libraries throw, without requests and responses, which carry payloads and signatures. */
export function troubleOf(error: unknown): AzureTrouble {
  if (error instanceof AzureTrouble) return error
  // Errors of the libraries have these where the service or the system said something.
  const {
    statusCode: status,
    code: said,
    message = String(error),
    details,
    response,
  } = error as {
    readonly statusCode?: number
    readonly code?: string
    readonly message?: string
    readonly details?: { readonly errorCode?: string; readonly odataError?: { readonly code?: string } }
    readonly response?: { readonly headers?: { get(name: string): string | undefined } }
  }
  const code =
    details?.odataError?.code ??
    details?.errorCode ??
    said ??
    (status === undefined ? 'UNKNOWN' : `HTTP ${status}`)
  const about = { code, message: `${code}: ${firstLine(message)}`.slice(0, LONGEST_MESSAGE) }
  const retryAfterUs = secondsOf(response?.headers?.get('retry-after'))
  if (status === 429 || (status === 503 && code !== 'OperationTimedOut'))
    return new AzureTrouble('throttled', {
      ...about,
      isCertain: true,
      retryAfterUs: retryAfterUs ?? SLOW_DOWN_US,
    })
  if (status === 404) return new AzureTrouble('gone', { ...about, isCertain: true })
  if (status === 412 || status === 409) return new AzureTrouble('changed', { ...about, isCertain: true })
  if (
    status === 401 ||
    status === 403 ||
    /Credential|Authentication/.test(error instanceof Error ? error.name : '')
  )
    return new AzureTrouble('denied', { ...about, isCertain: true })
  if (status !== undefined && status < 500) return new AzureTrouble('refused', { ...about, isCertain: true })
  return new AzureTrouble('away', { ...about, isCertain: status === undefined && UNREACHED.has(code) })
}

const firstLine = (text: string): string => text.split('\n', 1)[0]?.trim() ?? ''

function secondsOf(text: string | undefined): bigint | null {
  const seconds = Number(text)
  return text === undefined || !Number.isFinite(seconds) || seconds < 0
    ? null
    : BigInt(Math.ceil(Math.min(seconds, 3_600) * 1e6))
}

interface Clients {
  readonly dlq: TableClient
  readonly history: TableClient
  readonly queues: QueueServiceClient
}

export class Account {
  readonly name: string
  readonly tables: Clients
  readonly #clock: Clock
  #slowUntil: Instant | null = null
  /** How far the service's clock is ahead of ours. */
  #aheadUs = 0n
  /** Calls that were told to come later, since the start. */
  throttled = 0

  private constructor(name: string, clock: Clock, clients: Clients) {
    this.name = name
    this.#clock = clock
    this.tables = clients
    for (const { pipeline } of [clients.dlq, clients.history])
      pipeline.addPolicy({
        name: 'bartleby.time',
        sendRequest: async (request, next) => {
          const sentAt = this.#clock.now()
          const response = await next(request)
          this.#noteTime(response.headers.get('date'), sentAt)
          return response
        },
      })
  }

  static async open(settings: AzureTables, clock: Clock): Promise<Account> {
    return new Account(settings.storageAccountName, clock, await clientsOf(settings))
  }

  /** What marks and source ids call one of its tables. */
  called(table: string): string {
    return `${this.name}/${table}`
  }

  queue(name: string): QueueClient {
    return this.tables.queues.getQueueClient(name)
  }

  /** Until when nobody should call; null: at once. */
  get slowUntil(): Instant | null {
    return this.#slowUntil !== null && this.#slowUntil > this.#clock.now() ? this.#slowUntil : null
  }

  /** An instant of ours by the clock of the service. */
  atService(at: Instant): Instant {
    return later(at, this.#aheadUs)
  }

  /** Makes a call, within its time. Throws an `AzureTrouble`, and that at once while the service asks for a pause. */
  async call<T>(act: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const until = this.slowUntil
    if (until !== null) throw paused(until - this.#clock.now())
    const late = AbortSignal.timeout(PATIENCE_MS)
    try {
      return await act(signal === undefined ? late : AbortSignal.any([late, signal]))
    } catch (error) {
      const trouble = troubleOf(error)
      if (trouble.kind === 'throttled') {
        this.throttled++
        this.#slowUntil = later(this.#clock.now(), trouble.retryAfterUs ?? SLOW_DOWN_US)
      }
      throw trouble
    }
  }

  /** The service looked at its clock between the call and its answer: an answer that was long on its way is no difference of clocks. */
  #noteTime(date: string | undefined, sentAt: Instant): void {
    const ms = date === undefined ? Number.NaN : Date.parse(date)
    if (Number.isNaN(ms)) return
    const told = BigInt(ms) * 1_000n
    const atLeast = told - this.#clock.now()
    const atMost = told + SECOND_US - sentAt
    if (atLeast > SAME_TIME_US) this.#aheadUs = atLeast
    else this.#aheadUs = atMost < -SAME_TIME_US ? atMost : 0n
  }
}

const paused = (us: bigint): AzureTrouble =>
  new AzureTrouble('throttled', {
    code: 'ServerBusy',
    message: 'ServerBusy: the account asked for a pause',
    isCertain: true,
    retryAfterUs: us,
  })

/** By a connection string in a file or in the environment, else as `DefaultAzureCredential` finds somebody to be. */
async function clientsOf(settings: AzureTables): Promise<Clients> {
  const { storageAccountName: name, connectionStringFile: file, dlqTableName, historyTableName } = settings
  const given = file === undefined ? variableOf(process.env, CONNECTION_STRING) : await readConnection(file)
  requireAzureLibraries([
    '@azure/data-tables',
    '@azure/storage-queue',
    ...(given === undefined ? (['@azure/identity'] as const) : []),
  ])
  const { TableClient } = await import('@azure/data-tables')
  const { QueueServiceClient } = await import('@azure/storage-queue')
  // Emulators speak plain HTTP. Repetitions are ours: a message that was sent twice by a client would be two.
  const forTables = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } }
  const forQueues = { retryOptions: { maxTries: 1 } }
  if (given !== undefined) {
    const account = /(?:^|;)\s*AccountName=([^;]*)/i.exec(given)?.[1]
    if (account !== undefined && account !== name) throw failure('azure_account_wrong', { account, name })
    return {
      dlq: TableClient.fromConnectionString(given, dlqTableName, forTables),
      history: TableClient.fromConnectionString(given, historyTableName, forTables),
      queues: QueueServiceClient.fromConnectionString(given, forQueues),
    }
  }
  const { DefaultAzureCredential } = await import('@azure/identity')
  const credential = new DefaultAzureCredential()
  const { endpoint = `https://${name}.table.core.windows.net`, queues } = settings
  const queueEndpoint = queues.endpoint ?? endpoint.replace('.table.', '.queue.')
  return {
    dlq: new TableClient(endpoint, dlqTableName, credential, forTables),
    history: new TableClient(endpoint, historyTableName, credential, forTables),
    queues: new QueueServiceClient(queueEndpoint, credential, forQueues),
  }
}

async function readConnection(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw failure('azure_connection_unread', { path, reason: code })
  }
}
