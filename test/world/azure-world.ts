/**
 * Engines with their tables and queues in an account, and an office on a store that reads them: as many servers as a test wants, each
 * doing only what it is told. Tables and queues are of their own for each world.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TableClient } from '@azure/data-tables'
import type { QueueClient } from '@azure/storage-queue'
import { silentLog } from '../../src/core/log.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { History } from '../../src/history/history.ts'
import type { Letter, LetterSummary } from '../../src/letters/letter.ts'
import { type CaseFile, Letters } from '../../src/letters/letters.ts'
import { newRegisters, type Registers } from '../../src/letters/registers.ts'
import type { LetterSource } from '../../src/letters/source.ts'
import { type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { type AzureTables, azureTablesOf, type TableKeys } from '../../src/outgoing/azure/keys.ts'
import { EngineDirectory, SeenEngines } from '../../src/queues/engines/engine-directory.ts'
import { Azure } from '../../src/sources/azure/azure.ts'
import { azureLetterSource } from '../../src/sources/azure/source.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import { type Gate, gateTo, type Step, stopBehind } from './azure-gate.ts'
import { ACCOUNT, type Azurite } from './azurite.ts'
import type { FreshStore, StoreKind } from './stores.ts'
import { violationsIn } from './verified.ts'

export interface EntityDraft {
  readonly partitionKey?: string
  readonly rowKey?: string
  readonly [column: string]: unknown
}

export interface WorldOptions {
  readonly tables?: Partial<TableKeys>
  readonly connectionString?: string
}

/** One server: its account, and letters that go back through it. */
export interface AzureServer {
  readonly azure: Azure
  readonly letters: Letters
  readonly source: LetterSource
  /** Does everything that is due, once. */
  round(...names: readonly string[]): Promise<void>
}

export class AzureWorld {
  readonly db: Database
  readonly clock = new TestClock()
  readonly settings: AzureTables
  readonly dlq: TableClient
  readonly history: TableClient
  readonly queueName: string
  readonly azurite: Azurite
  readonly registers: Registers = newRegisters()
  readonly engines: EngineDirectory
  readonly books: History
  server: AzureServer
  readonly #runs: OfficeRuns
  readonly #place: FreshStore
  readonly #folder: string
  readonly #servers: Azure[] = []
  readonly #gates: Gate[] = []
  #made = 0

  private constructor(
    azurite: Azurite,
    db: Database,
    place: FreshStore,
    folder: string,
    settings: AzureTables,
  ) {
    this.azurite = azurite
    this.db = db
    this.#place = place
    this.#folder = folder
    this.settings = settings
    this.clock.freeze(this.clock.now())
    this.dlq = azurite.table(settings.dlqTableName)
    this.history = azurite.table(settings.historyTableName)
    this.queueName = `queue-${settings.dlqTableName.slice(-8).toLowerCase()}`
    this.engines = new EngineDirectory({}, new SeenEngines(db))
    this.#runs = officeRuns(db, this.clock, silentLog)
    this.books = new History(db, this.clock, this.engines)
    // Before anything is asked of it.
    this.server = undefined as unknown as AzureServer
  }

  static async open(
    azurite: Azurite,
    kind: StoreKind,
    { tables = {}, connectionString }: WorldOptions = {},
  ): Promise<AzureWorld> {
    const place = await kind.fresh()
    const db = openDatabase(place.url, { poolSize: 8 })
    await migrate(db, MIGRATIONS)
    const folder = await mkdtemp(join(tmpdir(), 'bartleby-azure-'))
    const file = join(folder, 'connection')
    await writeFile(file, connectionString ?? azurite.connectionString)
    const id = randomUUID().replaceAll('-', '').slice(0, 12)
    const settings = azureTablesOf({
      ...{ storageAccountName: ACCOUNT, dlqTableName: `dlq${id}`, historyTableName: `his${id}` },
      ...{ connectionStringFile: file, ...tables },
    })
    if (settings === null) throw new Error('no account')
    const world = new AzureWorld(azurite, db, place, folder, settings)
    await Promise.all([world.dlq.createTable(), world.history.createTable(), world.queue().create()])
    world.server = await world.another()
    return world
  }

  get letters(): Letters {
    return this.server.letters
  }

  /** Another server on the store. */
  async another(settings: Partial<AzureTables> = {}): Promise<AzureServer> {
    const server = await this.#opened({ ...this.settings, ...settings })
    this.#servers.push(server.azure)
    return server
  }

  /** A server sends a letter back and stands still behind a step, as good as dead: nobody hears of it again. */
  async sendAndDie(letter: Letter, step: Step, settings: Partial<AzureTables> = {}): Promise<void> {
    const gate = await this.gate()
    gate.decide(stopBehind(step))
    const connectionStringFile = await this.connectionFile(gate)
    const dying = await this.#opened({ ...this.settings, ...settings, connectionStringFile })
    dying.letters.retry(letter, { edit: null, notes: null, actor: 'nell' }).catch(() => {})
    await gate.held
  }

  /** A gate before the account, which closes with this world. */
  async gate(): Promise<Gate> {
    const gate = await gateTo(this.azurite.ports)
    this.#gates.push(gate)
    return gate
  }

  /** A file with the connection string of a gate. */
  async connectionFile({ connectionString }: Gate): Promise<string> {
    const path = join(this.#folder, `connection-${randomUUID()}`)
    await writeFile(path, connectionString)
    return path
  }

  async #opened(settings: AzureTables): Promise<AzureServer> {
    const { db, clock, registers, engines } = this
    const azure = await Azure.open({ db, clock, log: silentLog, registers, engines, settings })
    const source = azureLetterSource(() => azure)
    const sources = new Map([[source.name, source]])
    const letters = new Letters(db, clock, {
      registers,
      sources,
      engines,
      runs: officeRuns(db, clock, silentLog),
    })
    return {
      azure,
      letters,
      source,
      async round(...names) {
        for (const rounds of azure.rounds)
          if (names.length === 0 || names.some((name) => rounds.name === `azure.${name}`)) {
            await rounds.now()
            const { isFailing, lastError } = rounds.state()
            if (isFailing) throw new Error(`${rounds.name}: ${lastError?.errorMessage}`)
          }
      },
    }
  }

  /** The office without the account: acts are on file, and nobody writes them. */
  offline(): Letters {
    const { db, clock, registers, engines } = this
    const source = azureLetterSource(() => null)
    const runs = officeRuns(db, clock, silentLog)
    return new Letters(db, clock, { registers, sources: new Map([[source.name, source]]), engines, runs })
  }

  queue(name: string = this.queueName): QueueClient {
    return this.azurite.queues.getQueueClient(name)
  }

  /** Writes a row as an engine does. A column that is undefined is left out. */
  async fail(draft: EntityDraft = {}): Promise<{ partitionKey: string; rowKey: string }> {
    const number = ++this.#made
    const partitionKey = draft.partitionKey ?? 'hmac'
    const rowKey = draft.rowKey ?? `inst-7-${String(number).padStart(8, '0')}`
    const given = this.columns({
      Engine: partitionKey,
      OriginalMessage: JSON.stringify({ n: number }),
      CorrelationId: `corr-${number}`,
      ...draft,
    })
    await this.dlq.createEntity({ ...given, partitionKey, rowKey })
    return { partitionKey, rowKey }
  }

  /** The columns of a row. One that is undefined is left out. */
  columns(draft: EntityDraft): Record<string, unknown> {
    const at = { type: 'DateTime', value: '2026-11-01T10:20:30.123456Z' }
    const columns = {
      ...{ InstanceId: 'inst-7', OriginalQueue: this.queueName, OriginalMessage: '{}' },
      ...{ ErrorMessage: 'connection refused', DequeueCount: { type: 'Int32', value: '5' } },
      ...{ FirstFailureAtUtc: at, LastFailureAtUtc: at, Status: 'Pending', ...draft },
    }
    return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined))
  }

  /** How many letters there are, by the books. */
  async total(): Promise<number> {
    const { items } = await this.letters.numbers.counts()
    return items.reduce((sum, { count }) => sum + count, 0)
  }

  get storeUrl(): string {
    return this.#place.url
  }

  /** Writes a row of history as an engine does. */
  async ran(draft: EntityDraft = {}): Promise<void> {
    const number = ++this.#made
    await this.history.createEntity({
      ...{ Engine: 'hmac', InstanceId: 'inst-7', Operation: 'rotate', Status: 'Succeeded' },
      DurationMs: { type: 'Int64', value: '1234' },
      ...{ Input: '{"a":1}', Output: '{"ok":true}', CorrelationId: `corr-${number}` },
      CreatedAtUtc: { type: 'DateTime', value: new Date().toISOString() },
      ...draft,
      partitionKey: draft.partitionKey ?? 'hmac',
      rowKey: draft.rowKey ?? `run-${number}`,
    })
  }

  /** The columns of an entity as the service has them, with their types. */
  async entity(
    { partitionKey, rowKey }: { partitionKey: string; rowKey: string },
    table: TableClient = this.dlq,
  ): Promise<Record<string, unknown>> {
    const raw = await table.getEntity<object>(partitionKey, rowKey, { disableTypeConversion: true })
    return Object.fromEntries(Object.entries(raw).filter(([name]) => !name.startsWith('odata')))
  }

  async list(filter: Parameters<Letters['list']>[0] = {}): Promise<readonly LetterSummary[]> {
    return (await this.letters.list(filter, { limit: 100 })).items
  }

  async only(filter: Parameters<Letters['list']>[0] = {}): Promise<Letter> {
    const items = await this.list(filter)
    const [only] = items
    if (only === undefined || items.length > 1) throw new Error(`there are ${items.length} letters`)
    return (await this.letters.get(only)).letter
  }

  caseFile({ engine, rowKey }: Pick<Letter, 'engine' | 'rowKey'>): Promise<CaseFile> {
    return this.letters.get({ engine, rowKey })
  }

  async operations(letter: Pick<Letter, 'engine' | 'rowKey'>): Promise<string[]> {
    return (await this.caseFile(letter)).history.map(({ operation }) => operation).toReversed()
  }

  /** The texts in a queue, which stay there. */
  async messages(name: string = this.queueName): Promise<string[]> {
    const { peekedMessageItems } = await this.queue(name).peekMessages({ numberOfMessages: 32 })
    return peekedMessageItems.map(({ messageText }) => messageText)
  }

  async violations(): Promise<readonly unknown[]> {
    return violationsIn(this.db, { clock: this.clock })
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((azure) => azure.stop()))
    await this.#runs.stop()
    await this.db.close()
    await Promise.all(this.#gates.map((gate) => gate.close()))
    await this.#place.dispose()
    await rm(this.#folder, { recursive: true })
  }
}
